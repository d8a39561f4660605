//! Cosignatures of witnesses on checkpoints. SOURCE: <https://c2sp.org/tlog-cosignature>, the Ed25519 form.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use rulekeep::system::Timestamp;
use sha2::{Digest as _, Sha256};

/// The public key of a witness with its name, written `<name>+<id in 8 hex digits>+<base 64 of 0x04 and the key>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessKey {
    name: String,
    public: VerifyingKey,
}

/// A statement of a witness that it saw no larger and no contradictory checkpoint of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cosigned {
    /// The name of the witness.
    pub witness: String,
    /// The time of the cosignature by the clock of the witness; of several the earliest.
    pub at: Timestamp,
}

/// The reason a cosignature or the key of a witness is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CosignatureError {
    /// The text of the key does not have the expected form.
    #[error("key of a witness: expected {0}")]
    Key(&'static str),
    /// The note does not have a text and signatures.
    #[error("note: expected a text, an empty line and signatures")]
    Note,
    /// A cosignature with the name and ID of a witness does not verify: it is forged, or the text was changed.
    #[error("the cosignature by {0} does not fit the checkpoint")]
    Bad(String),
    /// Fewer witnesses than required have cosigned.
    #[error("cosigned by {found} of the witnesses, expected at least {needed}")]
    TooFew {
        /// Number of witnesses that have cosigned.
        found: usize,
        /// Number of witnesses required.
        needed: usize,
    },
}

impl WitnessKey {
    /// Returns the public key of the witness that signs with this seed (RFC 8032).
    ///
    /// # Errors
    ///
    /// [`CosignatureError::Key`] for a name that is empty, longer than 256 bytes, or contains white space, a control
    /// character or a `+`.
    pub fn from_seed(name: &str, seed: &[u8; 32]) -> Result<Self, CosignatureError> {
        Self::new(name, SigningKey::from_bytes(seed).verifying_key())
    }

    /// The name of the witness.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn new(name: &str, public: VerifyingKey) -> Result<Self, CosignatureError> {
        let is_letter = |letter: char| letter != '+' && !letter.is_whitespace() && !letter.is_control();
        if (1..=256).contains(&name.len()) && name.chars().all(is_letter) {
            Ok(Self { name: name.to_owned(), public })
        } else {
            Err(CosignatureError::Key("a name of 1 to 256 bytes without spaces, control characters and +"))
        }
    }

    fn encoded(&self) -> [u8; 33] {
        let mut encoded = [KIND; 33];
        encoded[1..].copy_from_slice(self.public.as_bytes());
        encoded
    }

    fn id(&self) -> [u8; 4] {
        let hasher = Sha256::new().chain_update(&self.name).chain_update("\n").chain_update(self.encoded());
        let [a, b, c, d, ..] = <[u8; 32]>::from(hasher.finalize());
        [a, b, c, d]
    }

    /// Returns the earliest time at which this witness has cosigned; `None` without a cosignature by it.
    fn cosigned(&self, text: &str, signatures: &str) -> Result<Option<Timestamp>, CosignatureError> {
        let (start, id) = (format!("— {} ", self.name), self.id());
        let lines = signatures.lines().filter_map(|line| STANDARD.decode(line.strip_prefix(&start)?).ok());
        let mut times = Vec::new();
        for signature in lines.filter_map(|line| line.strip_prefix(&id).map(<[u8]>::to_vec)) {
            let bad = || CosignatureError::Bad(self.name.clone());
            let (time, signature) = signature.split_first_chunk::<8>().ok_or_else(bad)?;
            let (time, signature) = (u64::from_be_bytes(*time), Signature::from_slice(signature).map_err(|_| bad())?);
            self.public.verify_strict(statement(text, time).as_bytes(), &signature).map_err(|_| bad())?;
            let seconds = i64::try_from(time).map_err(|_| bad())?;
            times.push(Timestamp::from_millis(seconds.saturating_mul(1000)));
        }
        Ok(times.into_iter().min())
    }
}

impl fmt::Display for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}+{}", self.name, hex::encode(self.id()), STANDARD.encode(self.encoded()))
    }
}

impl FromStr for WitnessKey {
    type Err = CosignatureError;

    fn from_str(text: &str) -> Result<Self, CosignatureError> {
        // The base 64 part may contain a `+`.
        let parts: Vec<_> = text.splitn(3, '+').collect();
        let &[name, id, key] = parts.as_slice() else {
            return Err(CosignatureError::Key("<name>+<id>+<base 64 of the key>"));
        };
        let public = STANDARD.decode(key).ok().and_then(|key| {
            let (&KIND, public) = key.split_first()? else { return None };
            VerifyingKey::try_from(public).ok().filter(|public| !public.is_weak())
        });
        let key = Self::new(name, public.ok_or(CosignatureError::Key("0x04 and an Ed25519 key"))?)?;
        let fits = hex::encode(key.id()) == id;
        if fits { Ok(key) } else { Err(CosignatureError::Key("the id that name and key have together")) }
    }
}

/// Returns the signature line, with its newline, by which the witness `name` cosigns a checkpoint's note at the time
/// `at`, in seconds since 1970. Append it to the note.
///
/// The caller has verified the checkpoint; [`Witness`](crate::witness::Witness) does so.
///
/// # Errors
///
/// [`CosignatureError::Key`] for an invalid name; [`CosignatureError::Note`] for a text that is not a note.
pub fn cosign(note: &str, name: &str, seed: &[u8; 32], at: u64) -> Result<String, CosignatureError> {
    let (text, _) = split(note)?;
    let id = WitnessKey::from_seed(name, seed)?.id();
    let signature = SigningKey::from_bytes(seed).sign(statement(text, at).as_bytes()).to_bytes();
    let line = STANDARD.encode([&id, at.to_be_bytes().as_slice(), &signature].concat());
    Ok(format!("— {name} {line}\n"))
}

/// Verifies that at least `needed` of the witnesses have cosigned a checkpoint's note, and returns those that have.
/// Signatures by other keys are ignored.
///
/// # Errors
///
/// [`CosignatureError::TooFew`]; [`CosignatureError::Bad`] if any cosignature by one of the witnesses is forged;
/// [`CosignatureError::Note`] for a text that is not a note.
pub fn cosigned_by(note: &str, witnesses: &[WitnessKey], needed: usize) -> Result<Vec<Cosigned>, CosignatureError> {
    let (text, signatures) = split(note)?;
    let mut cosigned = Vec::new();
    for (place, witness) in witnesses.iter().enumerate() {
        // The statement does not name the witness, so one key under two names is one witness.
        let is_counted = witnesses.iter().take(place).any(|earlier| earlier.public == witness.public);
        if let (Some(at), false) = (witness.cosigned(text, signatures)?, is_counted) {
            cosigned.push(Cosigned { witness: witness.name.clone(), at });
        }
    }
    let found = cosigned.len();
    if found < needed { Err(CosignatureError::TooFew { found, needed }) } else { Ok(cosigned) }
}

/// The text of a note with its last newline, and its signature lines.
fn split(note: &str) -> Result<(&str, &str), CosignatureError> {
    let end = note.rfind("\n\n").ok_or(CosignatureError::Note)?;
    note.get(..=end).zip(note.get(end + 2..)).ok_or(CosignatureError::Note)
}

/// The message that a witness signs.
fn statement(text: &str, time: u64) -> String {
    format!("cosignature/v1\ntime {time}\n{text}")
}

/// The byte that identifies the kind of a key and its signatures.
const KIND: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str =
        "example.com/org\n1\nCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=\n\n— example.com/org AAAAAAAA\n";

    fn key(seed: u8) -> WitnessKey {
        WitnessKey::from_seed(&format!("w{seed}"), &[seed; 32]).unwrap()
    }

    fn cosigned(seeds: &[u8]) -> String {
        let line = |seed: &u8| cosign(NOTE, &format!("w{seed}"), &[*seed; 32], 1_679_315_147).unwrap();
        NOTE.to_owned() + &seeds.iter().map(line).collect::<String>()
    }

    #[test]
    fn the_key_of_a_public_witness_reads_back() {
        // SOURCE: a witness in operation, in the tests of github.com/transparency-dev/formats.
        let text = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2";
        let key: WitnessKey = text.parse().unwrap();
        assert_eq!((key.name(), key.to_string().as_str()), ("remora.n621.de", text));
        let wrong = [
            text.replace("BOvN", "AevN"),
            text.replace("da77", "da78"),
            text.replace("remora", "romera"),
            text.replace("+da77ade7", ""),
            text.replace("mtw2", "mtw"),
            text.replace("remora", "re mora"),
            format!("{}+00000000+BAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "weak"),
        ];
        for text in wrong {
            assert!(matches!(text.parse::<WitnessKey>(), Err(CosignatureError::Key(_))), "{text}");
        }
    }

    #[test]
    fn each_witness_counts_once_and_others_not_at_all() {
        let count = |note: &str, keys: &[WitnessKey], needed| cosigned_by(note, keys, needed).map(|by| by.len());
        let keys = [key(1), key(2), key(3)];
        assert_eq!(count(&cosigned(&[1, 3, 4]), &keys, 2), Ok(2));
        assert_eq!(count(&cosigned(&[1, 1, 1]), &keys, 2), Err(CosignatureError::TooFew { found: 1, needed: 2 }));
        assert_eq!(count(NOTE, &keys, 0), Ok(0));
        assert_eq!(count(&cosigned(&[4]), &keys, 1), Err(CosignatureError::TooFew { found: 0, needed: 1 }));
        let renamed = WitnessKey::from_seed("other", &[1; 32]).unwrap();
        let note = cosigned(&[1]) + &cosign(NOTE, "other", &[1; 32], 5).unwrap();
        assert_eq!(count(&note, &[key(1), renamed, key(1)], 1), Ok(1), "one key under two names");
        assert_eq!(count("no note", &keys, 0), Err(CosignatureError::Note));
        assert_eq!(cosign("no note", "w1", &[1; 32], 5), Err(CosignatureError::Note));
        assert!(matches!(cosign(NOTE, "w+1", &[1; 32], 5), Err(CosignatureError::Key(_))));
    }

    #[test]
    fn a_changed_text_time_or_signature_is_refused() {
        let good = cosigned(&[1]);
        assert_eq!(cosigned_by(&good, &[key(1)], 1).unwrap()[0].at, Timestamp::from_millis(1_679_315_147_000));
        let early = good.clone() + &cosign(NOTE, "w1", &[1; 32], 7).unwrap();
        assert_eq!(cosigned_by(&early, &[key(1)], 1).unwrap()[0].at, Timestamp::from_millis(7000));
        let bad = Err(CosignatureError::Bad("w1".to_owned()));
        assert_eq!(cosigned_by(&good.replacen("/org\n1", "/org\n2", 1), &[key(1)], 1), bad);
        let line = cosign(NOTE, "w1", &[1; 32], 7).unwrap();
        let signed = STANDARD.decode(line.trim_end().strip_prefix("— w1 ").unwrap()).unwrap();
        for place in 4..signed.len() {
            let mut changed = signed.clone();
            changed[place] ^= 1;
            let note = format!("{NOTE}— w1 {}\n", STANDARD.encode(changed));
            assert_eq!(cosigned_by(&note, &[key(1)], 0), bad, "byte {place}");
        }
        let beyond = cosign(NOTE, "w1", &[1; 32], 1 << 63).unwrap();
        assert_eq!(cosigned_by(&(NOTE.to_owned() + &beyond), &[key(1)], 1), bad);
        let short = format!("{NOTE}— w1 {}\n", STANDARD.encode(&signed[..10]));
        assert_eq!(cosigned_by(&short, &[key(1)], 1), bad);
    }
}
