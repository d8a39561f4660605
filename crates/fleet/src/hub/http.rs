//! The calls of a hub over HTTP, and its console page.

use std::collections::HashMap;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use rulekeep::checkpoint::VerifierKey;
use rulekeep_server::http::Place;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep_until};

use super::records::Wanted;
use super::{Hub, HubError, store};
use crate::enrolment::Enrol;
use crate::log::{Resource, entries_bundle};
use crate::membership::number;
use crate::order::SignedOrder;
use crate::wire::{
    self, Beat, MAX_BODY_BYTES, MAX_RETURNED, MAX_STRANGERS_BYTES, MAX_WANTS, Records, Refusal, Reserve, Signature,
};

impl Hub {
    /// The hub's calls, to be served by [`Server`](rulekeep_server::http::Server), which limits time and connections.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/fleet/v1/enrol", post(enrol))
            .route("/fleet/v1/beat", post(beat))
            .route("/fleet/v1/reserve", post(reserve))
            .route("/fleet/v1/records", post(copy).get(find))
            .route("/fleet/v1/orders", post(give).get(orders))
            .route("/fleet/v1/orders/{seq}", get(standing))
            .route("/fleet/v1/members", get(members))
            .route("/fleet/v1/bundles/{record}", get(bundle))
            .route("/checkpoint", get(checkpoint))
            .route("/tile/{*path}", get(tile))
            .route("/", get(console))
            .with_state(self.clone())
    }

    /// The public key of a member. For unknown names all keys are read again, once a second at most: so they cost the
    /// database the same, however many callers make them up.
    pub(super) async fn key_of(&self, governor: &str) -> Result<VerifierKey, HubError> {
        let asked = Instant::now();
        if let Some(key) = self.keys().get(governor) {
            return Ok(key.clone());
        }
        let mut read = self.inner.keys_read.lock().await;
        if read.is_none_or(|read| read < asked) {
            if let Some(read) = *read {
                sleep_until(read + KEYS_EVERY).await;
            }
            let begun = Instant::now();
            let all = async { Ok(self.inner.store.client().await?.query("SELECT id, key FROM governors", &[]).await?) };
            let rows = self.inner.store.in_time(store::TIMEOUT, all).await?;
            let mut keys = self.keys();
            for row in &rows {
                if !keys.contains_key(row.get::<_, &str>(0)) {
                    keys.extend(row.get::<_, &str>(1).parse().map(|key| (row.get(0), key)).ok());
                }
            }
            *read = Some(begun);
        }
        let key = self.keys().get(governor).cloned();
        key.ok_or_else(|| HubError::Forbidden(format!("no governor {governor} is enrolled")))
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, HashMap<String, VerifierKey>> {
        self.inner.keys.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Reads a request that a governor signed. All others are refused by the head. A governor whose membership has ended
    /// may send a short body alone.
    async fn signed<T: DeserializeOwned + FromMember>(&self, request: Request) -> Result<(T, UnderWay<'_>), HubError> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let unsigned = |name: &str| HubError::Forbidden(format!("the request is not signed by {name}"));
        let signature = head.headers.get(wire::SIGNATURE).and_then(|value| value.to_str().ok());
        let signature = signature.and_then(Signature::read).ok_or_else(|| unsigned("a member"))?;
        let key = self.key_of(signature.name).await?;
        if !signature.is_by(&key, path) {
            return Err(unsigned(signature.name));
        }
        let is_member = !self.orders().chain.is_retired(signature.name);
        let under_way = UnderWay::of(self, signature.name);
        if is_member && under_way.is_usual() {
            keep(&head);
        }
        let body = text(body, is_member).await?;
        let request: T = read(&body)?;
        if !request.is_sound() {
            return Err(HubError::Invalid("a number or a text of the request is out of range".to_owned()));
        }
        let is_signed = request.governor() == signature.name && signature.is_of(&body);
        if is_signed { Ok((request, under_way)) } else { Err(unsigned(request.governor())) }
    }

    /// Lets few strangers at a time use the database, so that connections to it are left for all others.
    async fn turn(&self, is_known: bool) -> Option<SemaphorePermit<'_>> {
        if is_known { None } else { self.inner.strangers.acquire().await.ok() }
    }

    async fn members(&self) -> Result<Members, HubError> {
        let client = self.inner.store.reader().await?;
        let (_, now) = store::identity(&client).await?;
        let orders = self.orders();
        let rows = client.query(MEMBERS, &[]).await?;
        self.inner.clock.read(&client).await?;
        let left = self.permit_left();
        let members = rows.iter().map(|row| {
            let (id, hub, until): (String, String, i64) = (row.get(0), row.get(12), row.get(10));
            let count = |column: usize| row.get::<_, i64>(column).unsigned_abs();
            MemberInfo {
                is_retired: orders.chain.is_retired(&id),
                id,
                groups: row.get(1),
                order: count(2),
                refused: serde_json::from_str(row.get(3)).unwrap_or_default(),
                open_actions: count(4),
                anchored: count(5),
                anchored_at: row.get(6),
                copied: count(7),
                seen_at: row.get(8),
                skew_ms: row.get(9),
                permit_until: if until == 0 { 0 } else { now.saturating_add(left(&hub, until)) },
                trouble: row.get(11),
            }
        });
        let chain = &orders.chain;
        Ok(Members {
            organisation: chain.organisation().map(|organisation| organisation.name.clone()),
            now,
            order: chain.seq(),
            stops: serde_json::to_value(
                chain
                    .stops()
                    .iter()
                    .map(|(seq, stop)| {
                        (
                            seq.to_string(),
                            json!({"scope": stop.scope, "groups": stop.groups, "by": stop.by, "note": stop.note}),
                        )
                    })
                    .collect::<serde_json::Map<_, _>>(),
            )
            .unwrap_or_default(),
            stages: self.stages(&client).await?,
            members: members.collect(),
        })
    }
}

/// The members of an organisation, and what binds them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Members {
    /// The organisation's name, once it is founded.
    pub organisation: Option<String>,
    /// The database's time, in milliseconds since 1970.
    pub now: i64,
    /// The number of the newest order.
    pub order: u64,
    /// The kill switches in force, by the numbers of their orders.
    pub stops: Value,
    /// The stages that rollouts have reached.
    pub stages: std::collections::BTreeMap<u64, usize>,
    /// The members, by id.
    pub members: Vec<MemberInfo>,
}

/// A member, as the hub knows it. Times are in milliseconds since 1970.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberInfo {
    /// The governor's id.
    pub id: String,
    /// The groups of the governor.
    pub groups: Vec<String>,
    /// True once the membership has ended.
    pub is_retired: bool,
    /// The number of the order in force there.
    pub order: u64,
    /// Orders that it could not carry out, with the reason.
    pub refused: std::collections::BTreeMap<u64, String>,
    /// Number of open actions of stopped agents.
    pub open_actions: u64,
    /// Number of entries that its newest anchored checkpoint covers.
    pub anchored: u64,
    /// The time of that checkpoint; 0 if there is none.
    pub anchored_at: i64,
    /// Number of entries whose records are copied where they are wanted.
    pub copied: u64,
    /// The time of its last beat; 0 if there was none.
    pub seen_at: i64,
    /// The lead of its clock over the database's, in milliseconds.
    pub skew_ms: i64,
    /// The latest time at which its permit ends.
    pub permit_until: i64,
    /// Why it gets no permit: a fork, a restored folder or a cloned process.
    pub trouble: String,
}

/// A caller with the token of readers.
struct Reader;

impl FromRequestParts<Hub> for Reader {
    type Rejection = HubError;

    async fn from_request_parts(head: &mut Parts, hub: &Hub) -> Result<Self, HubError> {
        let given = head.headers.get(header::AUTHORIZATION);
        let given = given.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let token = hub.inner.settings.read_token.as_ref();
        if token.zip(given).is_some_and(|(token, given)| token.as_bytes().ct_eq(given.as_bytes()).into()) {
            keep(head);
            return Ok(Self);
        }
        Err(HubError::Forbidden("reading needs the hub's token, as a bearer token".to_owned()))
    }
}

async fn enrol(State(hub): State<Hub>, request: Request) -> Result<Response, HubError> {
    // The governor's key has signed what counts in it.
    let request: Enrol = read(&text(request.into_body(), false).await?)?;
    let _turn = hub.turn(hub.verified(&request).is_ok()).await;
    let key = hub.inner.store.in_time(store::TIMEOUT, hub.enrol(request)).await?;
    hub.keys().insert(key.name().to_owned(), key);
    Ok(Json(()).into_response())
}

async fn beat(State(hub): State<Hub>, request: Request) -> Result<Response, HubError> {
    let (beat, _under_way) = hub.signed::<Beat>(request).await?;
    Ok(Json(hub.beat(beat).await?).into_response())
}

async fn reserve(State(hub): State<Hub>, request: Request) -> Result<Response, HubError> {
    let (request, _under_way) = hub.signed::<Reserve>(request).await?;
    Ok(Json(hub.reserve(request).await?).into_response())
}

async fn copy(State(hub): State<Hub>, request: Request) -> Result<Response, HubError> {
    let (batch, _under_way) = hub.signed::<Records>(request).await?;
    Ok(Json(hub.inner.store.in_time(store::TIMEOUT, hub.copy(&batch)).await?).into_response())
}

async fn find(State(hub): State<Hub>, _: Reader, Query(wanted): Query<Wanted>) -> Result<Response, HubError> {
    Ok(Json(hub.find(&wanted).await?).into_response())
}

async fn give(State(hub): State<Hub>, request: Request) -> Result<Response, HubError> {
    // A kill switch is short, so whoever has it can give it, also without the token of readers.
    let (mut head, body) = request.into_parts();
    let is_reader = Reader::from_request_parts(&mut head, &hub).await.is_ok();
    let order: SignedOrder = read(&text(body, is_reader).await?)?;
    let is_next = hub.orders().chain.verified(&order).is_ok();
    if is_next {
        keep(&head);
    }
    let _turn = hub.turn(is_next).await;
    Ok(Json(hub.inner.store.in_time(store::TIMEOUT, hub.give(&order)).await?).into_response())
}

/// A request of a governor, counted until it is answered.
struct UnderWay<'a> {
    hub: &'a Hub,
    governor: String,
    count: usize,
}

impl<'a> UnderWay<'a> {
    fn of(hub: &'a Hub, governor: &str) -> Self {
        let mut requests = hub.inner.requests.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let count = requests.entry(governor.to_owned()).or_default();
        *count += 1;
        Self { hub, governor: governor.to_owned(), count: *count }
    }

    /// Returns whether a governor has so many requests under way: a beat, copies, and decisions that wait.
    fn is_usual(&self) -> bool {
        self.count <= MOST_UNDER_WAY
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut requests = self.hub.inner.requests.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(count) = requests.get_mut(&self.governor) {
            *count -= 1;
            if *count == 0 {
                requests.remove(&self.governor);
            }
        }
    }
}

/// Keeps the connection of a caller that is known. Those of strangers make room for new ones.
fn keep(head: &Parts) {
    if let Some(place) = head.extensions.get::<Place>() {
        place.keep();
    }
}

/// Reads a body; that of a stranger only if it is short.
async fn text(body: Body, is_known: bool) -> Result<String, HubError> {
    let most = if is_known { MAX_BODY_BYTES } else { MAX_STRANGERS_BYTES };
    let wrong = |why: &str| HubError::Invalid(format!("expected a body of at most {most} bytes: {why}"));
    if body.size_hint().lower() > most as u64 {
        return Err(wrong("it is longer"));
    }
    let body = to_bytes(body, most).await.map_err(|error| wrong(&error.to_string()))?;
    String::from_utf8(body.into()).map_err(|error| HubError::Invalid(error.to_string()))
}

fn read<T: DeserializeOwned>(body: &str) -> Result<T, HubError> {
    serde_json::from_str(body).map_err(|error| HubError::Invalid(error.to_string()))
}

/// The orders after a number.
#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: usize,
}

async fn orders(State(hub): State<Hub>, _: Reader, Query(from): Query<After>) -> Result<Response, HubError> {
    hub.read_orders(&hub.inner.store.reader().await?).await?;
    let orders: Vec<_> = hub.orders().after(from.after);
    Ok(Json(orders).into_response())
}

async fn standing(State(hub): State<Hub>, _: Reader, Path(seq): Path<u64>) -> Result<Response, HubError> {
    let client = hub.inner.store.reader().await?;
    Ok(Json(hub.standing(&client, seq).await?).into_response())
}

async fn members(State(hub): State<Hub>, _: Reader) -> Result<Response, HubError> {
    Ok(Json(hub.members().await?).into_response())
}

async fn bundle(
    State(hub): State<Hub>,
    _: Reader,
    Path(record): Path<String>,
    Query(of): Query<HashMap<String, String>>,
) -> Result<Response, HubError> {
    Ok(Json(hub.bundle(&record, of.get("governor").map(String::as_str)).await?).into_response())
}

async fn checkpoint(State(hub): State<Hub>) -> Result<Response, HubError> {
    let _turn = hub.turn(false).await;
    let client = hub.inner.store.reader().await?;
    let (_, note) = hub.published(&client).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], note).into_response())
}

/// Hash tiles are public; bundles of entries, which hold orders and names, are for readers.
async fn tile(
    State(hub): State<Hub>,
    reader: Result<Reader, HubError>,
    Path(path): Path<String>,
) -> Result<Response, HubError> {
    let unknown = || HubError::NotFound(format!("there is no tile {path}"));
    let resource = format!("tile/{path}").parse()?;
    let _turn = hub.turn(reader.is_ok()).await;
    let client = hub.inner.store.reader().await?;
    let bytes = match resource {
        Resource::Hashes(id, width) => {
            let tile = "SELECT hashes FROM tiles WHERE level = $1 AND n = $2";
            let row = client.query_opt(tile, &[&i16::from(id.level), &number(id.index)]).await?;
            let hashes: Vec<u8> = row.ok_or_else(unknown)?.get(0);
            hashes.get(..width as usize * 32).ok_or_else(unknown)?.to_vec()
        }
        Resource::Entries(index, width) => {
            reader?;
            let first = number(index.saturating_mul(256));
            let leaves = "SELECT body FROM leaves WHERE idx >= $1 AND idx < $2 ORDER BY idx";
            let rows = client.query(leaves, &[&first, &first.saturating_add(i64::from(width))]).await?;
            if rows.len() < width as usize {
                return Err(unknown());
            }
            entries_bundle(&rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>())?
        }
    };
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

async fn console() -> Response {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, policy)], CONSOLE)
        .into_response()
}

impl IntoResponse for HubError {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Invalid(_) | Self::Content(_) => StatusCode::BAD_REQUEST,
            Self::Order(_) => StatusCode::CONFLICT,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Settings(_) | Self::Database(_) | Self::Log(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, Json(Refusal { error: self.to_string() })).into_response()
    }
}

/// A request that a governor signed.
trait FromMember {
    /// The governor that must have signed it.
    fn governor(&self) -> &str;

    /// Whether the database can store it: what it refuses would fail everybody's messages of the same moment.
    fn is_sound(&self) -> bool;
}

fn is_text(text: &str) -> bool {
    (1..=MAX_TEXT_BYTES).contains(&text.len()) && !text.contains(|letter: char| letter.is_control() || letter == ' ')
}

/// Whether a checkpoint fits into a leaf of the log, also beside another one.
fn is_note(note: &str) -> bool {
    note.len() <= MAX_NOTE_BYTES && !note.contains(|letter: char| letter.is_control() && letter != '\n')
}

fn is_name(counter: &str) -> bool {
    counter.len() <= MAX_NOTE_BYTES / 4 && !counter.contains('\0')
}

fn is_number(number: u64) -> bool {
    i64::try_from(number).is_ok()
}

impl FromMember for Beat {
    fn is_sound(&self) -> bool {
        let grants = self.report.iter().flat_map(|report| &report.grants);
        [&self.governor, &self.boot].into_iter().chain(&self.nonce).all(|text| is_text(text))
            && self.anchor.iter().all(|anchor| is_note(&anchor.note))
            && self.returned.len() <= MAX_RETURNED
            && self.returned.iter().all(|each| is_name(&each.counter) && is_number(each.number))
            && grants.into_iter().all(|grant| {
                is_name(&grant.counter) && is_text(&grant.boot) && is_number(grant.number) && is_number(grant.epoch)
            })
    }

    fn governor(&self) -> &str {
        &self.governor
    }
}

impl FromMember for Reserve {
    fn is_sound(&self) -> bool {
        [&self.governor, &self.boot].into_iter().all(|text| is_text(text))
            && self.wants.len() <= MAX_WANTS
            && self.wants.iter().all(|want| is_name(&want.counter) && is_number(want.number))
    }

    fn governor(&self) -> &str {
        &self.governor
    }
}

impl FromMember for Records {
    fn is_sound(&self) -> bool {
        is_text(&self.governor) && is_number(self.size) && is_number(self.until)
    }

    fn governor(&self) -> &str {
        &self.governor
    }
}

/// The longest id in a message.
const MAX_TEXT_BYTES: usize = 256;
/// The longest checkpoint. Two of them fit into one leaf of the log.
const MAX_NOTE_BYTES: usize = 8 << 10;
/// The most requests of one governor whose connections are kept.
const MOST_UNDER_WAY: usize = 16;
/// The pause between two readings of all members' keys.
const KEYS_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
const CONSOLE: &str = include_str!("console.html");
const MEMBERS: &str = "SELECT id, groups, order_seq, refused::text, open_actions, size, anchored_at, copied, seen_at, \
    skew_ms, permit_until, trouble, permit_hub FROM governors ORDER BY id";
