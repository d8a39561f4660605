//! Roots and proofs compared with those of `ct-merkle`, an independent implementation of RFC 6962.

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use rulekeep::proof::Digest;
use rulekeep_fleet::log;
use sha2::Sha256;

use crate::{Numbers, Organisation};

type Twin = MemoryBackedTree<Sha256, Vec<u8>>;

fn concatenated(path: &[Digest]) -> Vec<u8> {
    path.iter().flat_map(|hash| *hash.as_bytes()).collect()
}

fn assert_root(organisation: &Organisation, twin: &Twin) {
    let (ours, theirs) = (organisation.head, twin.root());
    assert_eq!((ours.size, ours.root.as_bytes().as_slice()), (twin.len(), theirs.as_bytes().as_slice()));
}

fn assert_proofs(organisation: &Organisation, twin: &Twin, index: u64, old: u64) {
    let (head, tiles) = (&organisation.head, &organisation.tiles);
    let path = log::inclusion(index, head, tiles).unwrap();
    let expected = twin.prove_inclusion(usize::try_from(index).unwrap());
    assert_eq!(concatenated(&path), expected.as_bytes(), "leaf {index} of {}", head.size);
    log::verify_inclusion(twin.get(usize::try_from(index).unwrap()).unwrap(), index, head, &path).unwrap();

    let path = log::consistency(old, head, tiles).unwrap();
    let expected = twin.prove_consistency(usize::try_from(head.size - old).unwrap());
    assert_eq!(concatenated(&path), expected.as_bytes(), "{old} in {}", head.size);
}

#[test]
fn roots_and_proofs_of_small_trees_match_another_implementation() {
    let (mut organisation, mut twin, mut numbers) = (Organisation::new("example.com/org"), Twin::new(), Numbers(1));
    let mut roots = Vec::new();
    for size in 1..=600 {
        let leaf = format!("leaf {size}").into_bytes();
        organisation.append(std::slice::from_ref(&leaf));
        twin.push(leaf);
        assert_root(&organisation, &twin);
        roots.push(organisation.head);
        for _ in 0..4 {
            let old = numbers.below(size) + 1;
            assert_proofs(&organisation, &twin, numbers.below(size), old);
            let earlier = roots[usize::try_from(old).unwrap() - 1];
            assert_eq!(log::root(old, &organisation.head, &organisation.tiles).unwrap(), earlier.root);
        }
    }
    for index in 0..600 {
        assert_proofs(&organisation, &twin, index, index + 1);
    }
}

#[test]
fn roots_and_proofs_of_batches_match_another_implementation() {
    for seed in 0..3 {
        let (mut organisation, mut twin, mut numbers) =
            (Organisation::new("example.com/org"), Twin::new(), Numbers(seed));
        while organisation.head.size < 70_000 {
            let most = [1, 3, 300, 9_000][usize::try_from(numbers.below(4)).unwrap()];
            let batch: Vec<_> =
                (0..=numbers.below(most)).map(|_| format!("{}", numbers.below(1 << 30)).into_bytes()).collect();
            organisation.append(&batch);
            for leaf in batch {
                twin.push(leaf);
            }
            assert_root(&organisation, &twin);
        }
        for _ in 0..200 {
            let size = organisation.head.size;
            let old = numbers.below(size) + 1;
            assert_proofs(&organisation, &twin, numbers.below(size), old);
        }
    }
}
