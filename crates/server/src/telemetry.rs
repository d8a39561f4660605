//! The `tracing` span of a webhook delivery; nothing without that feature. `docs/reference/status.md` lists the
//! names.

/// A delivery in flight: a span that ends when this is dropped.
pub(crate) struct Delivery {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

impl Delivery {
    pub(crate) fn start() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::info_span!(
                "rulekeep.deliver",
                "gen_ai.operation.name" = "deliver",
                "error.type" = tracing::field::Empty,
                "http.response.status_code" = tracing::field::Empty,
                "rulekeep.event.id" = tracing::field::Empty,
                "rulekeep.webhook.id" = tracing::field::Empty,
            ),
        }
    }

    #[cfg_attr(not(feature = "tracing"), allow(unused_variables, clippy::unused_self))]
    pub(crate) fn note(&self, field: &'static str, value: &dyn std::fmt::Display) -> &Self {
        #[cfg(feature = "tracing")]
        self.span.record(field, tracing::field::display(value));
        self
    }

    /// Runs `work` within the span.
    #[cfg_attr(not(feature = "tracing"), allow(clippy::unused_self))]
    pub(crate) fn around<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        let _entered = self.span.enter();
        work()
    }
}
