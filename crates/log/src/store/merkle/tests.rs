//! Compares the tree with an independent implementation (`ct-merkle`), which also verifies the proofs.

use sha2::Sha256;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::LazyLock;

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use ct_merkle::{ConsistencyProof, InclusionProof, RootHash};
use proptest::prelude::*;

use super::{BLOCK_LEAVES, Frontier, Nodes, TreeError, hash};
use rulekeep_types::Digest;

type Twin = MemoryBackedTree<Sha256, [u8; 32]>;

fn leaf(index: u64) -> Digest {
    Digest::of(&index.to_be_bytes())
}

#[allow(clippy::unnecessary_wraps)] // the tree takes leaves that can fail to be read
fn leaves(range: Range<u64>) -> Result<Vec<Digest>, Infallible> {
    assert!(
        range.start.is_multiple_of(BLOCK_LEAVES) && range.end - range.start <= BLOCK_LEAVES,
        "{range:?} is not of one block"
    );
    Ok(range.map(leaf).collect())
}

fn grown(size: u64) -> (Frontier, Nodes) {
    let (mut frontier, mut nodes) = (Frontier::new(), Nodes::default());
    for index in 0..size {
        if let Some(block) = frontier.push(&leaf(index)) {
            nodes.push(block);
        }
    }
    (frontier, nodes)
}

/// A tree with nodes at level 16, to compare with the other implementation.
static LARGE: LazyLock<(Frontier, Nodes)> = LazyLock::new(|| grown(LARGE_SIZE));
const LARGE_SIZE: u64 = 65_536 + 700;

fn judge(root: Digest, size: u64) -> RootHash<Sha256> {
    RootHash::new((*root.as_bytes()).into(), size)
}

fn bytes(path: &[Digest]) -> Vec<u8> {
    path.iter().flat_map(|hash| *hash.as_bytes()).collect()
}

fn holds_inclusion(nodes: &Nodes, index: u64, size: u64) -> bool {
    let proof = InclusionProof::try_from_bytes(bytes(&nodes.inclusion(index, size, leaves).unwrap())).unwrap();
    let root = judge(nodes.root(size, leaves).unwrap(), size);
    root.verify_inclusion(leaf(index).as_bytes(), index, &proof).is_ok()
}

fn holds_consistency(nodes: &Nodes, old: u64, size: u64) -> bool {
    let proof = ConsistencyProof::try_from_bytes(bytes(&nodes.consistency(old, size, leaves).unwrap())).unwrap();
    let [old, new] = [old, size].map(|size| judge(nodes.root(size, leaves).unwrap(), size));
    new.verify_consistency(&old, &proof).is_ok()
}

#[test]
fn the_roots_are_those_of_the_reference_implementation() {
    // SOURCE: the reference tests of certificate-transparency-go, by the authors of RFC 6962 among others.
    let inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
    let roots = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let mut frontier = Frontier::new();
    let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(frontier.root().to_string(), empty);
    for (input, root) in inputs.iter().zip(roots) {
        frontier.push_subtree(0, hash::leaf(&hex::decode(input).unwrap()));
        assert_eq!(frontier.root().to_string(), format!("sha256:{root}"));
    }
}

#[test]
fn every_size_to_300_has_its_twins_root_and_proofs() {
    let (mut frontier, mut nodes, mut twin) = (Frontier::new(), Nodes::default(), Twin::new());
    for size in 1..=300_u64 {
        let added = leaf(size - 1);
        if let Some(block) = frontier.push(&added) {
            nodes.push(block);
        }
        twin.push(*added.as_bytes());
        assert_eq!(frontier.size(), size);
        assert_eq!(frontier.root().as_bytes().as_slice(), twin.root().as_bytes().as_slice(), "{size}");
        assert_eq!(nodes.root(size, leaves), Ok(frontier.root()), "{size}");

        let every = if size <= 40 || size == 257 { 1 } else { 101 };
        for place in (1..=size).rev().step_by(every) {
            let path = nodes.inclusion(place - 1, size, leaves).unwrap();
            let of_twin = twin.prove_inclusion(usize::try_from(place - 1).unwrap());
            assert_eq!(bytes(&path), of_twin.as_bytes(), "{} of {size}", place - 1);
            let path = nodes.consistency(place, size, leaves).unwrap();
            let of_twin = twin.prove_consistency(usize::try_from(size - place).unwrap());
            assert_eq!(bytes(&path), of_twin.as_bytes(), "{place} to {size}");
        }
    }
}

#[test]
fn a_tree_with_nodes_above_nodes_has_its_twins_root_and_proofs() {
    let (frontier, nodes) = &*LARGE;
    let mut twin = Twin::new();
    (0..LARGE_SIZE).for_each(|index| twin.push(*leaf(index).as_bytes()));
    assert_eq!(frontier.root().as_bytes().as_slice(), twin.root().as_bytes().as_slice());
    assert_eq!(nodes.root(LARGE_SIZE, leaves), Ok(frontier.root()));
    for place in [1, 255, 256, 257, 65_535, 65_536, 65_537, LARGE_SIZE - 1, LARGE_SIZE] {
        let of_twin = twin.prove_inclusion(usize::try_from(place - 1).unwrap());
        assert_eq!(bytes(&nodes.inclusion(place - 1, LARGE_SIZE, leaves).unwrap()), of_twin.as_bytes(), "{place}");
        let of_twin = twin.prove_consistency(usize::try_from(LARGE_SIZE - place).unwrap());
        assert_eq!(bytes(&nodes.consistency(place, LARGE_SIZE, leaves).unwrap()), of_twin.as_bytes(), "{place}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_entry_and_any_earlier_tree_is_proven_to_another_hand(size in 1..=LARGE_SIZE, at in 0.0..1.0_f64) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let index = (at * size as f64) as u64;
        prop_assert!(holds_inclusion(&LARGE.1, index, size));
        prop_assert!(holds_consistency(&LARGE.1, index + 1, size));
    }
}

#[test]
fn what_is_not_in_the_tree_is_refused() {
    let (_, nodes) = grown(300);
    assert_eq!(nodes.inclusion(300, 300, leaves), Err(TreeError::OutOfRange { place: 300, size: 300 }));
    assert_eq!(nodes.inclusion(0, 0, leaves), Err(TreeError::OutOfRange { place: 0, size: 0 }));
    assert_eq!(nodes.consistency(301, 300, leaves), Err(TreeError::OutOfRange { place: 301, size: 300 }));
    assert_eq!(nodes.inclusion(0, 600, leaves), Err(TreeError::Missing { size: 600 }));
    assert_eq!(nodes.consistency(0, 300, leaves), Ok(Vec::new()));
    assert_eq!(nodes.consistency(300, 300, leaves), Ok(Vec::new()));
}

#[test]
fn leaves_that_cannot_be_read_end_a_proof() {
    let (_, nodes) = grown(300);
    assert_eq!(nodes.inclusion(7, 300, |_| Err("gone")), Err(TreeError::Leaves(Some("gone"))));
    assert_eq!(nodes.inclusion(7, 300, |_| Ok::<_, ()>(vec![Digest::ZERO])), Err(TreeError::Leaves(None)));
}
