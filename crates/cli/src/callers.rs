//! Callers of the MCP gateway who prove who they are: with an API key, which the daemon checks, or with an access token
//! of an OAuth 2.1 authorization server, which is checked here.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rulekeep::agent::AgentId;
use rulekeep::system::{Clock as _, SystemClock};
use rulekeep_mcp::{Callers, Refused, Remote};
use rulekeep_server::tokens::{Error, Verifier};

use crate::client::{Failure, Line};
use crate::daemon::AgentOfKey;
use crate::home::Home;

/// The options for callers who prove who they are.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("callers").multiple(true))]
pub(crate) struct CallerOptions {
    /// The URL under which callers reach the gateway, which is the audience of their tokens
    #[arg(long, value_name = "URL", requires_all = ["listen", "callers"], conflicts_with_all = ["agent", "ask_user", "task"])]
    public_url: Option<String>,
    /// Serves callers with an API key that is limited to one agent, as that agent
    #[arg(long, requires = "public_url", group = "callers")]
    api_keys: bool,
    /// Serves callers with an access token of this OAuth 2.1 authorization server
    #[arg(long, value_name = "URL", requires_all = ["public_url", "jwks"], group = "callers")]
    issuer: Option<String>,
    /// The file with the public keys of the authorization server, as a JWK Set; it may change while the gateway runs
    #[arg(long, value_name = "FILE", requires = "issuer")]
    jwks: Option<PathBuf>,
    /// A scope that a token needs; can be given several times
    #[arg(long = "scope", value_name = "SCOPE", requires = "issuer")]
    scopes: Vec<String>,
    /// The claim of a token that names the agent
    #[arg(long, value_name = "CLAIM", requires = "issuer", default_value = "sub")]
    agent_claim: String,
    /// The start of the names of agents that tokens name
    #[arg(long, value_name = "PREFIX", requires = "issuer", default_value = "")]
    agent_prefix: String,
}

impl CallerOptions {
    /// The settings for callers; `None` if they do not prove who they are.
    pub(crate) fn remote(self, home: Home) -> Result<Option<Remote>, String> {
        let Some(url) = self.public_url else { return Ok(None) };
        let tokens = match (&self.issuer, &self.jwks) {
            (Some(issuer), Some(jwks)) => Some(Verifier::load(jwks, issuer, &url).map_err(|error| error.to_string())?),
            _ => None,
        };
        let (issuer, scopes) = (self.issuer.clone(), self.scopes.clone());
        let keys = self.api_keys.then(|| Keys { home, line: Mutex::default() });
        let Self { scopes: needed, agent_claim, agent_prefix, .. } = self;
        let known = Known { keys, tokens, needed, claim: agent_claim, prefix: agent_prefix };
        let remote = Remote::new(url, Arc::new(known));
        Ok(Some(issuer.into_iter().fold(remote, |remote, issuer| remote.issuer(issuer, scopes.clone()))))
    }
}

struct Known {
    keys: Option<Keys>,
    tokens: Option<Verifier>,
    /// The scopes that a token needs.
    needed: Vec<String>,
    claim: String,
    prefix: String,
}

impl Callers for Known {
    fn agent(&self, token: &str, peer: IpAddr) -> Result<String, Refused> {
        match (&self.keys, &self.tokens) {
            (Some(keys), tokens) if tokens.is_none() || token.starts_with("rkp_") => keys.agent(token, peer),
            (_, Some(tokens)) => self.agent_of_token(tokens, token),
            _ => Err(Refused::Unchecked("the gateway knows no callers".to_owned())),
        }
    }
}

impl Known {
    fn agent_of_token(&self, tokens: &Verifier, token: &str) -> Result<String, Refused> {
        let claims = tokens.check(token, SystemClock.now()).map_err(|error| match error {
            Error::Keys { .. } => unchecked(&error.to_string()),
            error => Refused::Token(error.to_string()),
        })?;
        if let Some(lacking) = self.needed.iter().find(|scope| !claims.scopes.contains(scope)) {
            return Err(Refused::Scope(format!("the token lacks the scope {lacking}")));
        }
        let name = claims.name(&self.claim).map_err(Refused::Caller)?;
        let agent: Result<AgentId, _> = format!("{}{name}", self.prefix).parse();
        agent
            .map(|agent| agent.to_string())
            .map_err(|error| Refused::Caller(format!("the token's claim {} names no agent: {error}", self.claim)))
    }
}

/// The API keys of the daemon.
struct Keys {
    home: Home,
    line: Mutex<Option<Line>>,
}

impl Keys {
    fn agent(&self, key: &str, peer: IpAddr) -> Result<String, Refused> {
        let asked = AgentOfKey { key: key.to_owned(), caller: peer.to_canonical().to_string() };
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match line.take().filter(|line| !line.is_closed()) {
            Some(open) => open,
            None => Line::operator(&self.home)
                .and_then(|line| line.ok_or_else(|| "the rulekeep daemon does not run".to_owned()))
                .map_err(|why| unchecked(&why))?,
        };
        let answer = line.insert(open).call("session/agent", &asked);
        answer.map_err(|Failure { code, message, .. }| match code.as_str() {
            "UNAUTHORIZED" => Refused::Token(message),
            "FORBIDDEN" => Refused::Caller(message),
            "RATE_LIMITED" => Refused::Busy(message),
            _ => unchecked(&message),
        })
    }
}

/// Tells the operator why callers cannot be checked. That is nothing for callers.
fn unchecked(why: &str) -> Refused {
    eprintln!("no caller can be checked: {why}");
    Refused::Unchecked("the gateway cannot check callers at present".to_owned())
}
