//! Witnesses of a journal's entries: `HEAD`, `CHECKPOINT`, the index, and a checkpoint supplied by the caller.

/// The statements of the witnesses about the first entries.
#[derive(Debug, Default)]
pub(super) struct Witnesses {
    /// A number of entries, and whether the journal has the ones that the witness names.
    said: Vec<(u64, bool)>,
}

impl Witnesses {
    /// Adds a witness of the first `entries` entries; `None` is ignored, because nothing can be told.
    pub(super) fn say(&mut self, entries: u64, agrees: Option<bool>) {
        self.said.extend(agrees.map(|agrees| (entries, agrees)));
    }

    /// Returns whether any witness names other entries.
    pub(super) fn contradict(&self) -> bool {
        self.said.iter().any(|(_, agrees)| !agrees)
    }

    /// Number of confirmed entries, from the first on: the largest number named by an agreeing witness that
    /// is below every number named by a contradicting one.
    pub(super) fn confirmed(&self) -> u64 {
        let of =
            |wanted: bool| self.said.iter().filter(move |(_, agrees)| *agrees == wanted).map(|(entries, _)| *entries);
        let other = of(false).min();
        of(true).filter(|entries| other.is_none_or(|other| *entries < other)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shorter_or_equal_witness_contradicts_is_unconfirmed() {
        let confirmed = |said: &[(u64, Option<bool>)]| {
            let mut witnesses = Witnesses::default();
            for (entries, agrees) in said {
                witnesses.say(*entries, *agrees);
            }
            (witnesses.confirmed(), witnesses.contradict())
        };
        assert_eq!(confirmed(&[]), (0, false));
        assert_eq!(confirmed(&[(9, None)]), (0, false));
        assert_eq!(confirmed(&[(3, Some(true)), (9, None), (7, Some(true))]), (7, false));
        assert_eq!(confirmed(&[(3, Some(true)), (9, Some(false)), (7, Some(true))]), (7, true));
        assert_eq!(confirmed(&[(3, Some(true)), (5, Some(false)), (7, Some(true))]), (3, true));
        assert_eq!(confirmed(&[(7, Some(false)), (7, Some(true))]), (0, true));
    }
}
