//! The calls that a connection may make: all of them, only those that change nothing, a list of calls, or those that
//! an API key permits.

use serde_json::value::RawValue;

use crate::calls::{self, Call, Entry, Params, Spec};
use crate::gateway::{Admitted, Gateway, Scope};
use rulekeep::Error;

/// The calls that `rulekeep`'s daemon opens on its socket for agents, without a key: reporting and waiting. None of them
/// answers an escalation or changes a rule.
pub const AGENT_SOCKET_CALLS: &[&str] =
    &["catalogue/list", "escalation/claim", "escalation/get", "escalation/wait", "outcome/report", "task/observe"];

/// The calls that the daemon answers itself on that socket, in a narrower form.
#[cfg(test)]
pub(crate) const NARROWED_CALLS: &[&str] = &["catalogue/load", "catalogue/pin", "enforce", "escalation/approve"];

/// The calls that the other side of a connection may make.
#[derive(Clone)]
pub enum Access {
    /// All calls: the other side is trusted like this process.
    Everything,
    /// Calls that change nothing and record nothing.
    Reading,
    /// The calls with these names.
    Only(&'static [&'static str]),
    /// The calls that this API key permits. The key is checked again for each call.
    Key(String),
}

impl Access {
    /// Makes a call.
    ///
    /// # Errors
    ///
    /// * [`Error::Forbidden`] or [`Error::Unauthorized`] if the access does not permit the call.
    /// * Otherwise the errors of the governor.
    pub fn make<C: Call>(&self, gateway: &Gateway, call: C) -> Result<C::Answer, Error> {
        match self.admit(gateway, &C::SPEC)? {
            Some(admitted) => admitted.make(call),
            None => call.run(gateway),
        }
    }

    /// Makes a call by name, for example `outcome/report`, for programs that pass JSON on. The named parameters are
    /// the text of a JSON object.
    ///
    /// ```
    /// use rulekeep::Governor;
    /// use rulekeep_server::{Access, gateway::Gateway};
    ///
    /// let gateway = Gateway::new(&Governor::builder().auto_register().open_in_memory()?)?;
    /// let params = r#"{"agentId":"a","input":"Summarize the meeting notes"}"#;
    /// let verdict = Access::Everything.call(&gateway, "enforce", params)?;
    /// assert!(verdict.get().contains(r#""decision":"ALLOW""#));
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] for an unknown name, and for parameters that are not an object.
    /// * [`Error::PayloadTooLarge`] for parameters above the call's size limit.
    /// * Otherwise the errors of the call's parameters and of [`Access::make`].
    pub fn call(&self, gateway: &Gateway, method: &str, params: &str) -> Result<Box<RawValue>, Error> {
        self.answer(gateway, calls::known(method)?, Params::of_call(method, params)?, false)
    }

    /// Answers a call whose entry is known. `is_line` states that later calls on the connection wait for it.
    pub(crate) fn answer(
        &self,
        gateway: &Gateway,
        entry: &Entry,
        params: Params,
        is_line: bool,
    ) -> Result<Box<RawValue>, Error> {
        let admitted = self.admit(gateway, entry.spec)?;
        let mut job = (entry.read)(params)?;
        if let Some(wait) = job.wait().filter(|_| is_line) {
            wait.check_line()?;
        }
        let made = match admitted {
            Some(admitted) => job.run_for(&admitted)?,
            None => job.run(gateway)?,
        };
        calls::to_raw(made.answer)
    }

    /// Checks that the access permits the call. Returns the admission if a key is used.
    fn admit(&self, gateway: &Gateway, spec: &Spec) -> Result<Option<Admitted>, Error> {
        let method = spec.method;
        match self {
            Self::Everything => Ok(None),
            Self::Reading if spec.only_reads() => Ok(None),
            Self::Only(methods) if methods.contains(&method) => Ok(None),
            Self::Reading => {
                let scopes = spec.scopes.iter().chain(&[Scope::Admin]).map(|scope| scope.as_str());
                let scopes = scopes.collect::<Vec<_>>().join(" or ");
                Err(forbidden(&format!("{method} needs an API key of the scope {scopes}")))
            }
            Self::Only(_) => Err(forbidden(&format!("{method} is not open to this connection"))),
            Self::Key(key) => {
                let admitted = gateway.admit(Some(key), LOCAL)?;
                admitted.may_call(spec)?;
                Ok(Some(admitted))
            }
        }
    }

    /// Checks that the access permits every call.
    ///
    /// # Errors
    ///
    /// [`Error::Forbidden`] if it does not; [`Error::Unauthorized`] for a key that is no longer accepted.
    pub fn admin(&self, gateway: &Gateway) -> Result<(), Error> {
        match self {
            Self::Everything => Ok(()),
            Self::Reading | Self::Only(_) => Err(forbidden("this needs an API key of the scope admin")),
            Self::Key(key) => gateway.admit(Some(key), LOCAL)?.admin(),
        }
    }

    /// Checks that the access permits subscriptions to events.
    pub(crate) fn may_subscribe(&self, gateway: &Gateway) -> Result<(), Error> {
        match self {
            Self::Everything | Self::Reading => Ok(()),
            Self::Only(_) => Err(forbidden("events are not open to this connection")),
            Self::Key(_) => self.admin(gateway),
        }
    }

    /// Switches the connection to an API key. Only a connection with read access can do so.
    ///
    /// # Errors
    ///
    /// [`Error::Forbidden`] for other connections; see also [`Gateway::admit`].
    pub(crate) fn authenticate(&mut self, gateway: &Gateway, key: &str) -> Result<(), Error> {
        if !matches!(self, Self::Reading | Self::Key(_)) {
            return Err(forbidden("this connection takes no API key"));
        }
        let _admitted = gateway.admit(Some(key), LOCAL)?;
        *self = Self::Key(key.to_owned());
        Ok(())
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Everything => "Everything",
            Self::Reading => "Reading",
            Self::Only(_) => "Only",
            Self::Key(_) => "Key",
        })
    }
}

fn forbidden(message: &str) -> Error {
    Error::Forbidden { message: message.to_owned() }
}

/// The caller name under which rejected keys are counted.
const LOCAL: &str = "local";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::{KeyDraft, Plan, Scope};
    use rulekeep::{Agent, Governor};
    use serde_json::json;

    fn gateway() -> Gateway {
        let governor = Governor::builder().open_in_memory().unwrap();
        governor.agents().register(Agent::new("a")).unwrap();
        Gateway::new(&governor).unwrap()
    }

    #[test]
    fn reading_changes_nothing() {
        let gateway = gateway();
        let agent = json!({ "agentId": "a" });
        assert!(Access::Reading.call(&gateway, "agent/get", &agent.to_string()).is_ok());
        let deciding = json!({ "agentId": "a", "input": "Read the notes" });
        assert!(Access::Reading.call(&gateway, "policy/explain", &deciding.to_string()).is_ok());
        for (method, params) in [
            ("agent/suspend", agent),
            ("enforce", deciding),
            ("stop/set", json!({ "all": true, "by": "a" })),
            ("key/create", json!({ "scope": "admin", "plan": "pro" })),
            ("policy/load", json!({ "text": "", "format": "toml" })),
        ] {
            assert_eq!(
                Access::Reading.call(&gateway, method, &params.to_string()).unwrap_err().code(),
                "FORBIDDEN",
                "{method}"
            );
        }
        assert_eq!(gateway.governor().verify().unwrap().records, 0);
    }

    #[test]
    fn a_list_of_calls_permits_no_other_and_no_key() {
        let gateway = gateway();
        let mut access = Access::Only(&["agent/get"]);
        assert!(access.call(&gateway, "agent/get", &json!({ "agentId": "a" }).to_string()).is_ok());
        assert_eq!(access.call(&gateway, "agent/list", &json!({}).to_string()).unwrap_err().code(), "FORBIDDEN");
        let key = gateway.keys().create(KeyDraft::new(Scope::Admin, Plan::Pro)).unwrap();
        assert_eq!(access.authenticate(&gateway, key.key.expose()).unwrap_err().code(), "FORBIDDEN");
    }

    #[test]
    fn a_key_permits_what_its_scope_does_until_it_is_revoked() {
        let gateway = gateway();
        let key = gateway.keys().create(KeyDraft::new(Scope::Admin, Plan::Pro)).unwrap();
        let mut access = Access::Reading;
        assert_eq!(access.authenticate(&gateway, "rkp_admin_wrong").unwrap_err().code(), "UNAUTHORIZED");
        access.authenticate(&gateway, key.key.expose()).unwrap();
        let agent = json!({ "agentId": "a" });
        assert!(access.call(&gateway, "agent/suspend", &agent.to_string()).is_ok());
        gateway.keys().revoke(key.info.id).unwrap();
        assert_eq!(access.call(&gateway, "agent/resume", &agent.to_string()).unwrap_err().code(), "UNAUTHORIZED");
    }
}
