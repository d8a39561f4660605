//! Compares keys and notes with what the Go implementation published, and tries changed, truncated and forged texts.

use proptest::prelude::*;

use super::note::Note;
use super::{Checkpoint, CheckpointError, CheckpointKey, ConsistencyProof, InclusionProof, VerifierKey};
use rulekeep_types::Digest;

// SOURCE: the documentation and tests of golang.org/x/mod/sumdb/note.
const GO_KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const GO_SEED: &str = "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const GO_TEXT: &str =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const GO_SIGNATURE: &str =
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

fn key() -> CheckpointKey {
    CheckpointKey::from_seed("example.com/agents", &[7; 32]).unwrap()
}

fn checkpoint(size: u64) -> Checkpoint {
    Checkpoint::new("example.com/agents", size, Digest::new([9; 32])).unwrap()
}

#[test]
fn keys_and_signatures_are_those_of_the_go_implementation() {
    let seed = super::text::bytes(GO_SEED).unwrap();
    let key = CheckpointKey::from_seed("PeterNeumann", seed[1..].try_into().unwrap()).unwrap();
    assert_eq!(key.verifier().to_string(), GO_KEY);
    assert_eq!(GO_KEY.parse::<VerifierKey>().unwrap(), key.verifier());
    assert_eq!(super::note::sign(GO_TEXT, &key), format!("{GO_TEXT}\n{GO_SIGNATURE}"));
}

#[test]
fn a_note_that_the_go_implementation_signed_opens() {
    let key: VerifierKey = GO_KEY.parse().unwrap();
    let note = format!("{GO_TEXT}\n{GO_SIGNATURE}");
    assert_eq!(Note::parse(&note).unwrap().opened_by(&key).unwrap(), GO_TEXT);
}

#[test]
fn a_checkpoint_that_sum_golang_org_signed_opens_as_a_note() {
    // SOURCE: the key is in the go command; the note is the example of c2sp.org/tlog-checkpoint under its original
    // name.
    let key: VerifierKey = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8".parse().unwrap();
    let text = "go.sum database tree\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
    let signature = "Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=";
    let note = format!("{text}\n— sum.golang.org {signature}\n");
    assert_eq!(Note::parse(&note).unwrap().opened_by(&key).unwrap(), text);
}

#[test]
fn a_key_never_shows_its_secret() {
    let shown = format!("{:?}", key());
    assert_eq!(shown, format!("CheckpointKey({}, ..)", key().verifier()));
    assert!(!shown.contains("0707") && !shown.contains("[7, 7") && !shown.contains(&super::text::base64([7; 32])));
    assert_eq!(*key().seed(), [7; 32]);
}

#[test]
fn a_new_key_takes_all_its_bits_from_the_entropy() {
    struct Counting(std::sync::atomic::AtomicU64);
    impl rulekeep_types::system::Entropy for Counting {
        fn bits(&self) -> u128 {
            u128::from(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) + 1
        }
    }
    let key = CheckpointKey::generate("a", &Counting(0.into())).unwrap();
    let mut expected = [0; 32];
    (expected[15], expected[31]) = (1, 2);
    assert_eq!(*key.seed(), expected);
}

#[test]
fn malformed_keys_are_refused() {
    let changed = [
        "",
        "PeterNeumann",
        "PeterNeumann+c74f20a3",
        "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+AhpC2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10T",
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW\n",
    ];
    for text in changed {
        assert!(matches!(text.parse::<VerifierKey>(), Err(CheckpointError::Malformed { .. })), "{text:?}");
    }
    assert!(matches!("a".repeat(2_000).parse::<VerifierKey>(), Err(CheckpointError::TooLarge { .. })));
}

#[test]
fn a_key_by_which_anything_could_be_made_to_fit_is_refused() {
    use sha2::Digest as _;
    // The neutral element, a point of small order.
    let mut public = [0; 33];
    (public[0], public[1]) = (1, 1);
    let id = sha2::Sha256::new().chain_update("weak\n").chain_update(public).finalize();
    let text = format!("weak+{}+{}", hex::encode(&id[..4]), super::text::base64(public));
    assert!(text.parse::<VerifierKey>().is_err());
}

#[test]
fn malformed_notes_are_refused_with_the_line() {
    let (text, signature) = (GO_TEXT, GO_SIGNATURE);
    let many = format!("{text}\n{}", signature.repeat(65));
    let rows = [
        (String::new(), 1),
        (text.to_owned(), 2),
        (format!("{text}{signature}"), 3),
        (format!("{text}\n"), 3),
        (format!("{text}\n{}", signature.trim_end()), 4),
        (format!("{text}\n{signature}\n"), 5),
        (format!("{text}\n{}", signature.replace('—', "-")), 4),
        (format!("{text}\n{}", signature.replace("— ", "—")), 4),
        (format!("{text}\n{}", signature.replace("PeterNeumann", "Peter+Neumann")), 4),
        (format!("{text}\n{}", signature.replace("PeterNeumann ", "")), 4),
        (format!("{text}\n{}", signature.replace("PeterNeumann", "Peter\u{2003}Neumann")), 4),
        (format!("{text}\n— PeterNeumann x08gow==\n"), 4),
        (format!("{text}\n{}", signature.replace("nAM=", "nAN=")), 4),
        (format!("{text}\n{}", signature.replace('=', "")), 4),
        (format!("{}\n{signature}", text.replace("then", "then\t")), 2),
        (format!("{}\n{signature}", text.replace(",\n", ",\r\n")), 1),
        (many, 68),
    ];
    for (note, line) in rows {
        let result = Note::parse(&note).map(|_| ());
        assert!(
            matches!(result, Err(CheckpointError::Malformed { line: found, .. }) if found == line),
            "{note:?}: {result:?}, expected line {line}"
        );
    }
    let large = format!("{}{text}\n{signature}", "x\n".repeat(200_000));
    assert!(matches!(Note::parse(&large), Err(CheckpointError::TooLarge { .. })));
}

#[test]
fn foreign_signatures_are_ignored_and_a_false_one_of_ours_fails() {
    let key: VerifierKey = GO_KEY.parse().unwrap();
    let other = format!("— witness.example {}\n", super::text::base64([1; 76]));
    let same_id = GO_SIGNATURE.replace("PeterNeumann", "Impostor");
    let open = |signatures: &str| {
        let note = format!("{GO_TEXT}\n{signatures}");
        Note::parse(&note).unwrap().opened_by(&key).map(|_| ())
    };
    assert_eq!(open(&format!("{other}{GO_SIGNATURE}{same_id}")), Ok(()));
    assert_eq!(open(&GO_SIGNATURE.repeat(2)), Ok(()));
    assert_eq!(open(&other), Err(CheckpointError::NotSigned { key: "PeterNeumann+c74f20a3".to_owned() }));
    let false_one = GO_SIGNATURE.replace("JnAM=", "JmAM=");
    assert!(matches!(open(&format!("{GO_SIGNATURE}{false_one}")), Err(CheckpointError::BadSignature { .. })));
}

#[test]
fn a_checkpoint_reads_back_and_one_of_another_log_does_not() {
    let key = key();
    let note = checkpoint(12).sign(&key).unwrap();
    assert!(
        note.starts_with(
            "example.com/agents\n12\nCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=\n\n— example.com/agents "
        )
    );
    assert_eq!(Checkpoint::open(&note, &key.verifier()), Ok(checkpoint(12)));
    assert_eq!(Checkpoint::read_unverified(&note), Ok(checkpoint(12)));

    let other = CheckpointKey::from_seed("example.com/other", &[7; 32]).unwrap();
    assert!(matches!(checkpoint(12).sign(&other), Err(CheckpointError::OtherLog { .. })));
    assert!(matches!(Checkpoint::open(&note, &other.verifier()), Err(CheckpointError::NotSigned { .. })));
    let of_other_log = super::note::sign(&checkpoint(12).to_string(), &other);
    assert!(matches!(Checkpoint::open(&of_other_log, &other.verifier()), Err(CheckpointError::OtherLog { .. })));
}

#[test]
fn a_checkpoint_has_one_spelling_and_may_have_lines_of_others() {
    let key = key();
    let root = super::text::base64([9; 32]);
    let open = |text: &str| Checkpoint::open(&super::note::sign(text, &key), &key.verifier());
    let good = format!("example.com/agents\n12\n{root}\n");
    assert_eq!(open(&good), Ok(checkpoint(12)));
    assert_eq!(open(&format!("{good}an extension\nand another\n")), Ok(checkpoint(12)));
    for size in ["", "012", "+12", "-1", " 12", "12 ", "0x12", "1e3", "00", "18446744073709551616"] {
        assert!(matches!(open(&good.replace("12", size)), Err(CheckpointError::Malformed { line: 2, .. })), "{size:?}");
    }
    let too_many = open(&good.replace("12", "281474976710657"));
    assert!(matches!(too_many, Err(CheckpointError::TooManyEntries { .. })));
    assert!(matches!(open(&good.replace("12", "0")), Err(CheckpointError::EmptyRoot { .. })));
    for root_text in [&root[1..], "", "CQkJ", &root.replace('=', "")] {
        let text = good.replace(&root, root_text);
        assert!(matches!(open(&text), Err(CheckpointError::Malformed { line: 3, .. })), "{root_text:?}");
    }
    assert!(matches!(open(&format!("{good}\nbehind\n")), Err(CheckpointError::Malformed { line: 4, .. })));
}

#[test]
fn a_change_of_any_byte_of_a_note_is_refused() {
    let key = key();
    let note = checkpoint(12).sign(&key).unwrap().into_bytes();
    let key = key.verifier();
    for at in 0..note.len() {
        let mut changed = note.clone();
        changed[at] ^= 1 << (at % 7);
        if let Ok(changed) = String::from_utf8(changed) {
            assert!(Checkpoint::open(&changed, &key).is_err(), "{changed:?}");
        }
        if let Ok(cut) = std::str::from_utf8(&note[..at]) {
            assert!(Checkpoint::open(cut, &key).is_err(), "{cut:?}");
        }
    }
}

#[test]
fn the_example_of_the_specification_reads_as_a_proof() {
    // SOURCE: c2sp.org/tlog-proof, with the hashes of its example.
    let file = "c2sp.org/tlog-proof@v1\nextra YWdlLXYx\nindex 73894\n\
        gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=\nB95lDa8R83lS8n0eG+o0buTxRKQTYFi//1U8anccXmA=\n\n\
        example.com/fancylog\n109482\nsFodV/vSp5O8n9a8QpW6PRY97tfOSW5bsc2Xl/EQi08=\n\n— example.com/fancylog hI2DJwAA\n";
    let proof: InclusionProof = file.parse().unwrap();
    assert_eq!((proof.index, proof.path.len()), (73_894, 2));
    assert!(proof.checkpoint.starts_with("example.com/fancylog\n"));
    assert_eq!(proof.to_string(), file.replace("extra YWdlLXYx\n", ""));
}

#[test]
fn malformed_proofs_are_refused_with_the_line() {
    let hash = super::text::base64([1; 32]);
    let hashes = format!("{hash}\n").repeat(65);
    let rows = [
        (String::new(), 1),
        ("c2sp.org/tlog-proof@v1\nindex 1\n".to_owned(), 2),
        ("c2sp.org/tlog-proof@v2\nindex 1\n\nnote".to_owned(), 1),
        ("c2sp.org/tlog-proof@v1\n\nnote".to_owned(), 2),
        ("c2sp.org/tlog-proof@v1\nindex 01\n\nnote".to_owned(), 2),
        ("c2sp.org/tlog-proof@v1\nindex\n\nnote".to_owned(), 2),
        ("c2sp.org/tlog-proof@v1\nextra !\nindex 1\n\nnote".to_owned(), 2),
        ("c2sp.org/tlog-proof@v1\nextra YQ==\nextra YQ==\n\nnote".to_owned(), 3),
        (format!("c2sp.org/tlog-proof@v1\nindex 1\n{hash}\n{}\n\nnote", &hash[4..]), 4),
        (format!("c2sp.org/tlog-proof@v1\nindex 1\n{hashes}\nnote"), 67),
    ];
    for (file, line) in rows {
        let result = file.parse::<InclusionProof>();
        assert!(
            matches!(result, Err(CheckpointError::Malformed { line: found, .. }) if found == line),
            "{file:?}: {result:?}, expected line {line}"
        );
    }
    let rows = [
        (String::new(), 1),
        ("rulekeep/tlog-consistency@v1\n".to_owned(), 2),
        ("rulekeep/tlog-consistency@v1\nold 1\nnew -2\n".to_owned(), 3),
        ("rulekeep/tlog-consistency@v1\nnew 1\nold 2\n".to_owned(), 2),
        (format!("rulekeep/tlog-consistency@v1\nold 1\nnew 2\n{hash}\n\n"), 5),
        (format!("rulekeep/tlog-consistency@v1\nold 1\nnew 2\n{hashes}"), 68),
    ];
    for (file, line) in rows {
        let result = file.parse::<ConsistencyProof>();
        assert!(
            matches!(result, Err(CheckpointError::Malformed { line: found, .. }) if found == line),
            "{file:?}: {result:?}, expected line {line}"
        );
    }
    assert!(matches!("x".repeat(600_000).parse::<InclusionProof>(), Err(CheckpointError::TooLarge { .. })));
    assert!(matches!("x".repeat(600_000).parse::<ConsistencyProof>(), Err(CheckpointError::TooLarge { .. })));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(\\PC|\n){0,200}") {
        let key = key().verifier();
        prop_assert!(Checkpoint::open(&text, &key).is_err());
        let _ = Checkpoint::read_unverified(&text);
        prop_assert!(text.parse::<VerifierKey>().is_err());
    }

    #[test]
    fn a_proof_reads_back(index: u64, old: u64, new: u64, path in prop::collection::vec(any::<[u8; 32]>(), 0..64)) {
        let path: Vec<Digest> = path.into_iter().map(Digest::new).collect();
        let inclusion = InclusionProof::new(index, path.clone(), "a\n1\n\n— a AAAA\n");
        prop_assert_eq!(inclusion.to_string().parse(), Ok(inclusion));
        let consistency = ConsistencyProof::new(old, new, path);
        prop_assert_eq!(consistency.to_string().parse(), Ok(consistency));
    }
}
