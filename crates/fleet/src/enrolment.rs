//! Enrolment: the invitation that an operator signs, and the request by which a governor accepts it.
//!
//! An invitation has a key of its own. Its text, which goes to the owner of a governor, carries the secret half; a
//! request carries the signed public half alone. Both the invitation's key and the governor's key sign the request, so
//! a hub cannot enrol a key that was not invited, and cannot choose the groups of a governor.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rulekeep::checkpoint::{CheckpointKey, VerifierKey};
use rulekeep::system::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::keys;

/// An invitation to enrol governors, as an operator signs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Invitation {
    /// The organisation's name.
    pub organisation: String,
    /// The public key of the invitation, which identifies it.
    pub key: String,
    /// The groups of the governors.
    pub groups: Vec<String>,
    /// Number of governors that may enrol with it.
    pub uses: u32,
    /// The time until which they may.
    pub expires_at: Timestamp,
}

impl Invitation {
    /// Signs the invitation as an operator. The returned text carries the secret of the invitation's own key.
    pub fn sign(&self, own: &CheckpointKey, operator: &CheckpointKey) -> String {
        let body = serde_json::to_string(self).unwrap_or_default();
        let (name, signature) = (operator.name(), keys::sign(operator, &signed_invitation(&body)));
        let secret = Zeroizing::new(hex::encode(*own.seed()));
        URL_SAFE_NO_PAD.encode(&*Zeroizing::new(format!("{name}\n{signature}\n{}\n{body}", *secret)))
    }
}

/// A governor's request to become a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Enrol {
    /// The governor's public key. Its name is the governor's id.
    pub key: String,
    /// The governor's groups: those of the invitation, or one of them.
    pub groups: Vec<String>,
    /// The proof that the governor was invited and accepted.
    pub proof: EnrolmentProof,
}

/// The signatures under an enrolment. The organisation's log keeps them for strangers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(clippy::exhaustive_structs)] // the log's format
pub struct EnrolmentProof {
    /// The JSON of the [`Invitation`], byte by byte as it was signed.
    pub invitation: String,
    /// The name of the operator who signed it.
    pub operator: String,
    /// The operator's signature of the invitation.
    pub operator_signature: String,
    /// The signature of the request by the invitation's key.
    pub invitation_signature: String,
    /// The signature of the request by the governor's key.
    pub governor_signature: String,
}

impl Enrol {
    /// Accepts an invitation, given as its text, for one of its groups or for all of them. `None` if the text is not an
    /// invitation.
    pub fn accept(text: &str, governor: &CheckpointKey, group: Option<&str>) -> Option<Self> {
        let text = Zeroizing::new(URL_SAFE_NO_PAD.decode(text.trim()).ok()?);
        let mut lines = std::str::from_utf8(&text).ok()?.splitn(4, '\n');
        let (operator, operator_signature) = (lines.next()?.to_owned(), lines.next()?.to_owned());
        let mut seed = Zeroizing::new([0; 32]);
        hex::decode_to_slice(lines.next()?, &mut *seed).ok()?;
        let invitation = lines.next()?.to_owned();
        let Invitation { key, groups, .. } = serde_json::from_str(&invitation).ok()?;
        let own = CheckpointKey::from_seed(key.split('+').next()?, &seed).ok()?;
        let groups = group.map_or(groups, |group| vec![group.to_owned()]);
        let key = governor.verifier().to_string();
        let request = signed_request(&key, &groups, &invitation);
        let (invitation_signature, governor_signature) = (keys::sign(&own, &request), keys::sign(governor, &request));
        let proof =
            EnrolmentProof { invitation, operator, operator_signature, invitation_signature, governor_signature };
        Some(Self { key, groups, proof })
    }

    /// Verifies that one of these operators invited the governor to the organisation, for these groups, and that it
    /// accepted. Returns the governor's key and the invitation.
    ///
    /// # Errors
    ///
    /// Describes what was expected.
    pub fn verify<'a>(
        &self,
        organisation: &str,
        operators: impl IntoIterator<Item = &'a VerifierKey>,
    ) -> Result<(VerifierKey, Invitation), &'static str> {
        let Self { key, groups, proof } = self;
        let text = signed_invitation(&proof.invitation);
        let mut named = operators.into_iter().filter(|operator| operator.name() == proof.operator);
        let is_invited = named.any(|operator| keys::verify(operator, &text, &proof.operator_signature));
        let invitation: Option<Invitation> = serde_json::from_str(&proof.invitation).ok().filter(|_| is_invited);
        let invitation = invitation
            .filter(|invitation| serde_json::to_string(invitation).is_ok_and(|spelled| spelled == proof.invitation))
            .filter(|invitation| invitation.organisation == organisation)
            .ok_or("an invitation that is signed by an operator of this organisation")?;
        if *groups != invitation.groups && !matches!(&groups[..], [one] if invitation.groups.contains(one)) {
            return Err("the groups of the invitation, or one of them");
        }
        let request = signed_request(key, groups, &proof.invitation);
        let is_signed = |key: &VerifierKey, signature: &str| keys::verify(key, &request, signature);
        // A name that is not plain ASCII fits into no header.
        let is_plain = |key: &VerifierKey| key.name().bytes().all(|byte| byte.is_ascii_graphic());
        let key = key.parse().ok().filter(|key| is_plain(key) && is_signed(key, &proof.governor_signature));
        let own = invitation.key.parse().ok().filter(|own| is_signed(own, &proof.invitation_signature));
        key.filter(|_| own.is_some())
            .map(|key| (key, invitation))
            .ok_or("signatures by the invitation's key and the governor's key, with a name in ASCII")
    }
}

fn signed_invitation(body: &str) -> String {
    format!("rulekeep fleet invitation\n{body}")
}

fn signed_request(key: &str, groups: &[String], invitation: &str) -> String {
    let groups = serde_json::to_string(groups).unwrap_or_default();
    format!("rulekeep fleet enrolment\n{key}\n{groups}\n{invitation}")
}
