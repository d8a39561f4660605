//! The definition of a call: its parameters, its description and its implementation.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::params::{Params, escalation_id, proof_id};
#[cfg(test)]
use super::spec::Shape;
use super::spec::{Spec, Subject};
use crate::gateway::{Admitted, Gateway, Made, Scope};
use rulekeep::Error;
use rulekeep::escalation::EscalationId;
use rulekeep::proof::ProofId;
use rulekeep::task::TaskId;

/// A call, with its parameters as fields. [`Access::make`](crate::Access::make) and [`Admitted::make`] make it.
pub trait Call: Read + Send + 'static {
    /// The description of the call.
    const SPEC: Spec;
    /// The type of the response.
    type Answer: Serialize + ToSchema;

    /// The subject of the call, which determines the keys that may make it.
    fn subject(&self) -> Subject<'_> {
        Subject::Everything
    }

    /// The task under which the call grants something, if any.
    fn task(&self) -> Option<TaskId> {
        None
    }

    /// The wait for an escalation, if the call is one.
    fn wait(&mut self) -> Option<&mut Wait> {
        None
    }

    /// Runs the call. The caller has checked that it is permitted.
    fn run(self, gateway: &Gateway) -> Result<Self::Answer, Error>;

    /// Runs the call for an API key, if the key permits it.
    fn run_for(self, admitted: &Admitted) -> Result<Self::Answer, Error> {
        admitted.permit(&self.subject())?;
        self.run(admitted.gateway())
    }

    /// The records that grant an action now.
    fn granted(_answer: &Self::Answer) -> Vec<ProofId> {
        Vec::new()
    }
}

/// Reads a call from its named parameters.
pub trait Read: Sized {
    /// Reads it; `spec` determines the error codes.
    fn read(params: Params, spec: &Spec) -> Result<Self, Error>;
}

impl<T: DeserializeOwned> Read for T {
    fn read(params: Params, spec: &Spec) -> Result<Self, Error> {
        params.typed(spec)
    }
}

/// A call that has been read, of any type.
pub(crate) trait Job: Send {
    /// See [`Call::SPEC`].
    fn spec(&self) -> &'static Spec;
    /// See [`Call::wait`].
    fn wait(&mut self) -> Option<&mut Wait>;
    /// See [`Call::run`]; the response is JSON.
    fn run(self: Box<Self>, gateway: &Gateway) -> Result<Made, Error>;
    /// See [`Call::run_for`]; the response is JSON.
    fn run_for(self: Box<Self>, admitted: &Admitted) -> Result<Made, Error>;
}

impl<C: Call> Job for C {
    fn spec(&self) -> &'static Spec {
        &C::SPEC
    }

    fn wait(&mut self) -> Option<&mut Wait> {
        Call::wait(self)
    }

    fn run(self: Box<Self>, gateway: &Gateway) -> Result<Made, Error> {
        let task = self.task();
        made::<C>(&Call::run(*self, gateway)?, task)
    }

    fn run_for(self: Box<Self>, admitted: &Admitted) -> Result<Made, Error> {
        let task = self.task();
        made::<C>(&admitted.make(*self)?, task)
    }
}

fn made<C: Call>(answer: &C::Answer, task: Option<TaskId>) -> Result<Made, Error> {
    Ok(Made { answer: to_bytes(answer)?, granted: C::granted(answer), task, is_secret: C::SPEC.tells_secret })
}

/// Serializes a response to JSON.
pub(crate) fn to_bytes(answer: &impl Serialize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(USUAL_ANSWER);
    match serde_json::to_writer(&mut bytes, answer) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(Error::internal("an answer cannot be serialized").caused_by(error)),
    }
}

/// Takes the bytes of a response as JSON.
pub(crate) fn to_raw(answer: Vec<u8>) -> Result<Box<RawValue>, Error> {
    let text = String::from_utf8(answer).ok().and_then(|text| RawValue::from_string(text).ok());
    text.ok_or_else(|| Error::internal("an answer is not JSON"))
}

/// Bytes that most verdicts fit in.
const USUAL_ANSWER: usize = 1024;

/// A row of the table of calls.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) spec: &'static Spec,
    pub(crate) read: fn(Params) -> Result<Box<dyn Job>, Error>,
    #[cfg(test)]
    pub(crate) request: Shape,
    #[cfg(test)]
    pub(crate) answer: Shape,
}

impl Entry {
    pub(crate) const fn of<C: Call + ToSchema>() -> Self {
        Self::in_form::<C, C>()
    }

    /// A call whose parameters are described by another type.
    #[cfg_attr(not(test), expect(clippy::extra_unused_type_parameters, reason = "only the OpenAPI document has it"))]
    pub(crate) const fn in_form<C: Call, F: ToSchema>() -> Self {
        Self {
            spec: &C::SPEC,
            read: |params| Ok(Box::new(C::read(params, &C::SPEC)?)),
            #[cfg(test)]
            request: Shape::of::<F>(),
            #[cfg(test)]
            answer: Shape::of::<C::Answer>(),
        }
    }
}

/// The escalation to wait for, and the time.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    #[serde(deserialize_with = "escalation_id")]
    pub(crate) id: EscalationId,
    /// The maximum time to wait, in milliseconds.
    #[schema(maximum = 10000, default = 0)]
    timeout_ms: Option<u64>,
}

impl Wait {
    /// Takes the time to wait. Afterwards the call returns at once.
    pub(crate) fn take_timeout(&mut self) -> Result<Duration, Error> {
        let timeout = self.timeout_ms.take().unwrap_or_default();
        if timeout > LONGEST_WAIT {
            return Err(Error::input("timeoutMs", format!("expected at most {LONGEST_WAIT}")));
        }
        Ok(Duration::from_millis(timeout))
    }

    /// Refuses a wait that would delay the following calls on a line connection for too long.
    pub(crate) fn check_line(&self) -> Result<(), Error> {
        match self.timeout_ms {
            Some(timeout) if timeout > LONGEST_LINE => {
                let message = format!("expected at most {LONGEST_LINE}: later lines wait as long");
                Err(Error::input("timeoutMs", message))
            }
            _ => Ok(()),
        }
    }
}

/// The longest wait, in milliseconds.
const LONGEST_WAIT: u64 = 10_000;
/// The longest wait on a line connection, where the following calls are delayed, in milliseconds.
const LONGEST_LINE: u64 = 1_000;

impl Admitted {
    /// Makes a call if the key permits it. The key is checked again, because it may have been revoked while a body
    /// arrived or an escalation was pending.
    ///
    /// # Errors
    ///
    /// * [`Error::Forbidden`] if the key does not permit the call.
    /// * [`Error::Unauthorized`] if the key was revoked or expired since the admission.
    /// * Otherwise the errors of the governor.
    pub fn make<C: Call>(&self, call: C) -> Result<C::Answer, Error> {
        self.may_call(&C::SPEC)?;
        self.accepted()?;
        call.run_for(self)
    }

    /// Runs several calls in sequence, each as if made alone: calls that the key does not permit are refused, and
    /// from the second on each takes room from the plan. Stops after the first for which `is_last` holds.
    pub(crate) fn run_each<C: Call>(
        &self,
        each: Vec<Result<C, Error>>,
        is_last: impl Fn(&Result<C::Answer, Error>) -> bool,
    ) -> Vec<Result<C::Answer, Error>> {
        let mut done = Vec::with_capacity(each.len());
        for (place, call) in each.into_iter().enumerate() {
            let room = if place == 0 { Ok(()) } else { self.take_room() };
            let answer = room.and(call).and_then(|call| self.make(call));
            let is_last = is_last(&answer);
            done.push(answer);
            if is_last {
                break;
            }
        }
        done
    }

    /// Checks that the key may make this call at all, before its parameters are read.
    pub(crate) fn may_call(&self, spec: &Spec) -> Result<(), Error> {
        if spec.is_for(self.scope()) { Ok(()) } else { self.admin() }
    }

    /// Checks that the key gives access to the subject.
    pub(crate) fn permit(&self, subject: &Subject<'_>) -> Result<(), Error> {
        if matches!(subject, Subject::Everything) {
            return self.admin();
        }
        // No agent has access to these, whatever its key.
        if matches!(subject, Subject::Reviews) && self.scope() == Scope::Agent {
            return self.admin();
        }
        if !self.is_limited_to_agents() {
            return Ok(());
        }
        let governor = self.gateway().governor();
        let is_permitted = match *subject {
            Subject::Everything | Subject::Reviews => false,
            Subject::Agent(agent_id) => self.is_for(agent_id),
            Subject::Record(id) => self.is_for(governor.log().record(&proof_id(id)?)?.entity_id.as_str()),
            Subject::Escalation(id) => self.is_for(governor.escalations().get(id)?.agent_id.as_str()),
        };
        if is_permitted {
            return Ok(());
        }
        Err(Error::Forbidden { message: "this API key is limited to other agents".to_owned() })
    }
}
