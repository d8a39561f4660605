//! Connections to PostgreSQL, the schema, and the database's identity.

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::{
    GenericClient, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use tokio_postgres::Config;
use tokio_postgres::config::{LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::HubError;

/// The connections of a hub.
pub(super) struct Store {
    pool: Pool,
    /// The newest primary that was seen.
    newest: Mutex<Option<Identity>>,
}

/// The database's identity: it changes with a restore or a promotion, and partly with each start of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) system: String,
    pub(super) timeline: u64,
    /// The time at which the server was started.
    pub(super) started: String,
}

impl Store {
    /// Prepares connections to the primary, and brings the schema up to date.
    pub(super) async fn open(url: &str, ca: Option<&[u8]>) -> Result<Self, HubError> {
        let settings = |error: &dyn std::fmt::Display| HubError::Settings(format!("database: {error}"));
        let mut config = Config::from_str(url).map_err(|error| settings(&error))?;
        // A standby would answer with what has been replaced.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        // A host that takes connections and says nothing must not come first each time.
        config.load_balance_hosts(LoadBalanceHosts::Random);
        config.connect_timeout(CONNECT_TIMEOUT).application_name("rulekeep-fleet-hub");
        // Longer than any wait of a hub: a cancelled commit that waits for the standby counts as a success.
        // A hub that is cut off keeps no members locked for the others.
        config.options(
            "-c statement_timeout=120000 -c lock_timeout=5000 -c idle_in_transaction_session_timeout=10000 \
             -c default_transaction_isolation=read\\ committed",
        );
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for certificate in ca.into_iter().flat_map(CertificateDer::pem_slice_iter) {
            let certificate = certificate.map_err(|error| settings(&error))?;
            roots.add(certificate).map_err(|error| settings(&error))?;
        }
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| settings(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config, MakeRustlsConnect::new(tls), recycling);
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .wait_timeout(Some(TIMEOUT))
            .create_timeout(Some(CONNECT_TIMEOUT))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| settings(&error))?;
        let store = Self { pool, newest: Mutex::default() };
        store.migrate().await?;
        Ok(store)
    }

    /// A connection to the primary.
    pub(super) async fn client(&self) -> Result<Object, HubError> {
        let mut found = self.pool.get().await;
        for _ in 1..ATTEMPTS {
            // The next attempt may begin with another host.
            if !matches!(found, Err(PoolError::Timeout(TimeoutType::Create))) {
                break;
            }
            found = self.pool.get().await;
        }
        found.map_err(|error| HubError::Database(format!("no connection: {error}")))
    }

    /// A connection to the primary for reading alone: one that was replaced still answers, and is refused.
    pub(super) async fn reader(&self) -> Result<Object, HubError> {
        let client = self.client().await?;
        self.check(&identity(&client).await?.0)?;
        Ok(client)
    }

    /// Waits for a request, and gives up all connections if the database does not answer it in time: they may lead to a
    /// primary that hangs.
    pub(super) async fn in_time<T>(
        &self,
        limit: Duration,
        request: impl Future<Output = Result<T, HubError>>,
    ) -> Result<T, HubError> {
        tokio::time::timeout(limit, request).await.unwrap_or_else(|_| {
            self.pool.retain(|_, _| false);
            Err(HubError::Database("it does not answer".to_owned()))
        })
    }

    /// Refuses a primary that another one has replaced, and gives up all connections.
    pub(super) fn check(&self, found: &Identity) -> Result<(), HubError> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.as_ref().is_some_and(|newest| newest.system == found.system && newest.timeline > found.timeline) {
            self.pool.retain(|_, _| false);
            let why =
                "this primary was replaced by another one; after a restore to an earlier timeline start the hubs again";
            return Err(HubError::Database(why.to_owned()));
        }
        *newest = Some(found.clone());
        Ok(())
    }

    async fn migrate(&self) -> Result<(), HubError> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await?;
        transaction.batch_execute("CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY)").await?;
        let row = transaction.query_one("SELECT coalesce(max(version), 0) FROM schema_version", &[]).await?;
        let version: i32 = row.get(0);
        let newest = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
        if version > newest {
            let message = format!("the database has schema {version}; this hub knows {newest}: use a newer hub");
            return Err(HubError::Settings(message));
        }
        for (number, script) in (1..).zip(MIGRATIONS).filter(|(number, _)| *number > version) {
            transaction.batch_execute(script).await?;
            transaction.execute("INSERT INTO schema_version VALUES ($1)", &[&number]).await?;
        }
        transaction.commit().await?;
        Ok(())
    }
}

/// The identity of the database, and its time in milliseconds.
pub(super) async fn identity(client: &impl GenericClient) -> Result<(Identity, i64), HubError> {
    let row = client.query_one(IDENTITY, &[]).await?;
    let timeline = u64::from_str_radix(row.get(1), 16).map_err(|error| HubError::Database(error.to_string()))?;
    Ok((Identity { system: row.get(0), timeline, started: row.get(3) }, row.get(2)))
}

const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];
const MIGRATION_LOCK: i64 = 0x7275_6c65_6b65_6570;
/// Connections of one hub.
const CONNECTIONS: usize = 8;
/// The longest time that a beat, or the wait for a connection, may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest time that a step of the log may take.
pub(super) const LONG_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const ATTEMPTS: usize = 4;
/// A copy under the same name has another OID.
const IDENTITY: &str = "SELECT (pg_control_system()).system_identifier || '.' || \
    (SELECT oid FROM pg_database WHERE datname = current_database()), \
    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), (extract(epoch FROM clock_timestamp()) * 1000)::bigint, \
    (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text";
