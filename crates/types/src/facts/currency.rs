//! Currencies.

/// Returns whether a text is the code of a currency.
/// SOURCE: ISO 4217, list one of 2024, without funds and metals.
pub fn is_currency(code: &str) -> bool {
    code.len() == 3 && CODES.split_whitespace().any(|known| known.eq_ignore_ascii_case(code))
}

const CODES: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF \
    CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR \
    IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK \
    MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD \
    SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_of_the_list_is_a_currency() {
        assert!(is_currency("EUR") && is_currency("usd"));
        assert!(!is_currency("BTC") && !is_currency("EU") && !is_currency("R U"));
    }
}
