//! OpenAPI schemas of vocabulary types that are more than a struct's fields.

use std::borrow::Cow;

use serde_json::json;
use utoipa::openapi::schema::{AdditionalProperties, SchemaType, Type};
use utoipa::openapi::{KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

use super::{
    Action, AgentId, Capability, Constraints, Digest, EscalationId, EventId, IntentId, KeyId, KillSwitchId,
    KillSwitchScope, Label, PreApprovalId, ProofCursor, ProofId, Score, Sequence, TaskId, Tier, Timestamp,
    TrustSnapshot, WebhookId,
};

/// Implements `ToSchema` for a type with the schema of an expression.
macro_rules! described {
    ($($name:ident $(as $shown:literal)? => $schema:expr;)+) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                $schema.into()
            }
        }

        impl ToSchema for $name {
            $(fn name() -> Cow<'static, str> {
                Cow::Borrowed($shown)
            })?
        }
    )+};
}

described! {
    AgentId => text(
        r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$",
        "An agent's identifier, chosen by the caller: 1 to 256 characters, not blank, none a control character.",
    ).max_length(Some(AgentId::MAX_CHARS)).examples([json!("support-1")]);
    Label => text(r"^[^\s\x00-\x1f\x7f-\x9f]{1,128}$", "A label or group: 1 to 128 characters without blanks.");
    Action => text("^[a-z][a-z0-9_]{0,127}$", "A normalized action name.").examples([json!("send_email")]);
    Capability => text(
        "^[a-z][a-z0-9_.-]*:[a-z][a-z0-9_.-]*$",
        "A right that an action needs, as resource:operation.",
    ).max_length(Some(128)).examples([json!("email:send")]);
    Digest => text("^sha256:[0-9a-f]{64}$", "A SHA-256 digest.");
    Timestamp => ObjectBuilder::new().schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some("A time with its offset. Answers have UTC, to the millisecond."));
    ProofCursor => text("^(start|c1[0-9a-f]{64})$", "`start`, or the `nextCursor` of a page of the same query.");
    Score => whole("A trust score.").maximum(Some(u64::from(Score::MAX.get())));
    Sequence => whole("A place in the log, counted from 0.");
    IntentId => id("int_", "An intent's identifier.");
    ProofId => id("prf_", "A proof record's identifier.");
    EventId => id("evt_", "An event's identifier.");
    EscalationId => id("esc_", "An escalation's identifier.");
    PreApprovalId => id("apv_", "The identifier of the pre-approval.");
    KillSwitchId as "StopId" => id("stp_", "A kill switch's identifier.");
    WebhookId => id("whk_", "The identifier of a webhook's endpoint.");
    TaskId => id("tsk_", "A task's identifier.");
    KeyId => id("key_", "An API key's identifier, which is no secret.");
    Constraints => free("Limits attached to a grant, for example maxRecords and timeoutMs.");
    Context => free("Context from the caller; at most 64 KiB of JSON, 32 levels deep. Parsing adds keys.").property(
        "environment",
        ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some("Where the action runs, for example production.")),
    );
    KillSwitchScope as "KillSwitchScope" => ObjectBuilder::new()
        .description(Some("The agents that the kill switch covers: one of the three."))
        .property("all", ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true])))
        .property("agentId", AgentId::schema())
        .property("group", Label::schema());
    TrustSnapshot => ObjectBuilder::new()
        .description(Some("An agent's trust at one moment."))
        .property("score", Score::schema()).required("score")
        .property("tier", Tier::schema()).required("tier")
        .property(
            "tierName",
            ObjectBuilder::new().schema_type(Type::String).enum_values(Some(Tier::ALL.iter().map(|tier| tier.name()))),
        ).required("tierName");
}

/// Schema of a caller's context.
pub struct Context;

fn text(pattern: &str, description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).description(Some(description))
}

/// The first of the 26 characters holds three of the 128 bits, each other one five.
fn id(prefix: &str, description: &str) -> ObjectBuilder {
    text(&format!("^{prefix}[0-7][0-9a-hjkmnp-tv-z]{{25}}$"), description)
}

fn whole(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).description(Some(description))
}

fn free(description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)))
        .description(Some(description))
}

/// Schema of a fixed set of words.
pub fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
}
