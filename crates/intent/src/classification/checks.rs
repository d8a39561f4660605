//! Checksum and format checks of identity numbers and account numbers, and the tests that tell a random key from a
//! word.

use serde::Deserialize;

/// A check, by the name that `patterns.toml` uses for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Check {
    Card,
    Iban,
    Luhn,
    UsSsn,
    UkNino,
    DeTax,
    FrNir,
    EsDni,
    NlBsn,
    BrCpf,
    Verhoeff,
    #[serde(rename = "ean13")]
    Ean13,
    ItCode,
    PlPesel,
    /// The second line of the machine-readable zone of a passport.
    PassportZone,
    /// A passport number with letters: digits too, unlike a word.
    Passport,
    /// A phone number with its country code.
    Phone,
    /// A phone number as it is written within a country.
    NationalPhone,
    /// The value has the letter and digit mix of a random key.
    Random,
    /// The value is written out; it is not a placeholder or a variable.
    Literal,
    /// The value contains more than letters.
    Mixed,
}

/// Returns whether a matched value passes a check.
pub(super) fn passes(check: Check, value: &str) -> bool {
    let digits: Vec<u32> = value.chars().filter_map(|c| c.to_digit(10)).collect();
    match check {
        Check::Card => is_card(&digits),
        Check::Iban => is_iban(value),
        Check::Luhn => luhn(&digits),
        Check::UsSsn => is_us_ssn(&digits),
        Check::UkNino => is_uk_nino(value),
        Check::DeTax => is_de_tax(&digits),
        Check::FrNir => {
            number(&digits, 0, 13).zip(number(&digits, 13, 15)).is_some_and(|(id, key)| 97 - id % 97 == key)
        }
        Check::EsDni => is_es_dni(value),
        Check::NlBsn => is_nl_bsn(&digits),
        Check::BrCpf => is_br_cpf(&digits),
        Check::Verhoeff => verhoeff(&digits),
        Check::Ean13 => {
            weighted(&digits, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]).is_some_and(|sum: u32| sum.is_multiple_of(10))
        }
        Check::ItCode => is_it_code(value),
        Check::PlPesel => {
            weighted(&digits, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]).is_some_and(|sum: u32| sum.is_multiple_of(10))
        }
        Check::PassportZone => is_passport_zone(value),
        Check::Passport => digits.len() >= 3,
        Check::Phone => is_phone(value, &digits),
        Check::NationalPhone => is_national_phone(value, &digits),
        Check::Random => is_random(value),
        Check::Literal => is_literal(value),
        Check::Mixed => is_literal(value) && is_mixed(value),
    }
}

/// The Luhn check. SOURCE: ISO/IEC 7812-1, annex B.
fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, &digit)| match (place % 2, digit) {
            (1, 9) => 9,
            (1, digit) => digit * 2 % 9,
            (_, digit) => digit,
        })
        .sum();
    digits.len() > 1 && sum.is_multiple_of(10)
}

/// Returns whether digits form a payment card number: a length and prefix that an issuer uses, and a valid check
/// digit.
/// SOURCE: the issuers' ranges as registered under ISO/IEC 7812.
fn is_card(digits: &[u32]) -> bool {
    let Some(lead) = number(digits, 0, 4) else { return false };
    let is_issued = match digits.len() {
        13 => lead / 1000 == 4,
        14 => matches!(lead, 3000..=3059 | 3600..=3699 | 3800..=3999),
        15 => matches!(lead, 3400..=3499 | 3700..=3799),
        16 => {
            matches!(lead, 4000..=4999 | 5100..=5599 | 2221..=2720 | 6011 | 6440..=6599 | 3528..=3589 | 6200..=6299 | 5018 | 5020 | 5038 | 6304 | 6759 | 6761..=6763)
        }
        17..=19 => {
            matches!(lead, 4000..=4999 | 6011 | 6440..=6599 | 6200..=6299 | 5018 | 5020 | 5038 | 6304 | 6759 | 6761..=6763)
        }
        _ => false,
    };
    is_issued && luhn(digits) && digits.iter().any(|&digit| Some(&digit) != digits.first())
}

/// Returns whether a text starts with a valid IBAN. SOURCE: ISO 13616; lengths by country from the SWIFT register.
fn is_iban(value: &str) -> bool {
    let whole: String = value.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect();
    let Some(length) = whole.get(..2).and_then(iban_length) else { return false };
    // The words after the number may look like another group of it, so only the country's length is read.
    let (Some(body), Some(head)) = (whole.get(4..length), whole.get(..4)) else { return false };
    let rest = body.chars().chain(head.chars()).try_fold(0_u32, |rest, c| {
        let value = c.to_digit(36)?;
        Some(if value < 10 { (rest * 10 + value) % 97 } else { (rest * 100 + value) % 97 })
    });
    rest == Some(1)
}

fn iban_length(country: &str) -> Option<usize> {
    IBAN_LENGTHS
        .iter()
        .find(|(_, countries)| countries.split(' ').any(|known| known == country))
        .map(|&(length, _)| length)
}

const IBAN_LENGTHS: &[(usize, &str)] = &[
    (15, "NO"),
    (16, "BE"),
    (18, "DK FI FO GL NL SD FK"),
    (19, "MK SI"),
    (20, "AT BA EE KZ LT LU XK MN"),
    (21, "CH HR LI LV"),
    (22, "BG BH CR DE GB GE IE ME RS VA"),
    (23, "AE GI IL IQ OM TL SO"),
    (24, "AD CZ ES MD PK RO SA SE SK TN VG"),
    (25, "LY PT ST"),
    (26, "IS TR"),
    (27, "BI DJ FR GR IT MC MR SM"),
    (28, "AL AZ BY CY DO GT HU LB NI PL SV"),
    (29, "BR EG PS QA UA"),
    (30, "JO KW MU YE"),
    (31, "MT SC"),
    (32, "LC"),
    (33, "RU"),
];

/// Returns whether the check digits of a passport's second line are right.
/// SOURCE: ICAO Doc 9303, part 4: weights 7, 3, 1 over the number, the birth date, the date of expiry and all of them.
fn is_passport_zone(line: &str) -> bool {
    let values: Vec<u32> = line.chars().map(|c| c.to_digit(36).unwrap_or(0)).collect();
    let is_right = |parts: &[(usize, usize)], check: usize| {
        let values_of = parts.iter().flat_map(|&(from, to)| values.get(from..to).unwrap_or_default());
        let sum: u32 = values_of.zip([7, 3, 1].into_iter().cycle()).map(|(value, weight)| value * weight).sum();
        values.get(check) == Some(&(sum % 10))
    };
    is_right(&[(0, 9)], 9)
        && is_right(&[(13, 19)], 19)
        && is_right(&[(21, 27)], 27)
        && is_right(&[(0, 10), (13, 20), (21, 43)], 43)
}

/// Returns whether digits with a country code can be a phone number: as many as one has, more than two different ones,
/// and a code that is assigned. SOURCE: ITU-T E.164 and its list of country codes; North American numbering plan.
fn is_phone(value: &str, digits: &[u32]) -> bool {
    let digits = if value.starts_with("00") { digits.get(2..).unwrap_or_default() } else { digits };
    let different = (0..10).filter(|digit| digits.contains(digit)).count();
    let is_assigned = match digits {
        [1, area, _, _, office, ..] => digits.len() == 11 && *area > 1 && *office > 1,
        [7, ..] => digits.len() == 11,
        [one, other, ..] => !UNASSIGNED_CODES.contains(&(one * 10 + other)),
        _ => false,
    };
    // Digits behind zeros alone, and a number with decimals, are more often something else.
    let is_grouped = !value.starts_with("00") || value.contains([' ', '-', '(']);
    let is_decimal = value.matches('.').count() == 1 && !value.contains([' ', '-', '(']);
    (8..=15).contains(&digits.len()) && different > 2 && is_assigned && is_grouped && !is_decimal
}

/// Returns whether digits beside a word for a phone can be its number: as many as one has, and neither a date nor an
/// address of a network.
fn is_national_phone(value: &str, digits: &[u32]) -> bool {
    let different = (0..10).filter(|digit| digits.contains(digit)).count();
    let is_date = matches!(digits, [1, 9, ..] | [2, 0, ..]) && value.get(4..5).is_some_and(|mark| "-./".contains(mark));
    let is_address = value.matches('.').count() == 3 && !value.contains([' ', '-', '(', '/']);
    (9..=13).contains(&digits.len()) && different > 2 && !is_date && !is_address
}

/// The beginnings of two digits under which no country has its code.
const UNASSIGNED_CODES: &[u32] = &[28, 83, 89];

/// Returns whether digits form a US Social Security number.
/// SOURCE: US Social Security Administration: areas 000, 666 and 900 to 999, group 00 and serial 0000 are never
/// assigned.
fn is_us_ssn(digits: &[u32]) -> bool {
    let (Some(area), Some(group), Some(serial)) = (number(digits, 0, 3), number(digits, 3, 5), number(digits, 5, 9))
    else {
        return false;
    };
    area != 0 && area != 666 && area < 900 && group != 0 && serial != 0
}

/// Returns whether the prefix of a UK National Insurance number can be assigned.
/// SOURCE: HM Revenue & Customs, NIM39110: prefixes that are never assigned.
fn is_uk_nino(value: &str) -> bool {
    let prefix = value.get(..2).unwrap_or("").to_ascii_uppercase();
    !matches!(prefix.as_str(), "BG" | "GB" | "KN" | "NK" | "NT" | "TN" | "ZZ")
}

/// The German tax identification number. SOURCE: ISO 7064 MOD 11,10; exactly one of the first ten digits occurs two
/// or three times.
fn is_de_tax(digits: &[u32]) -> bool {
    let (Some(body), Some(check)) = (digits.get(..10), digits.get(10)) else { return false };
    let counts = (0..10).map(|digit| body.iter().filter(|&&known| known == digit).count());
    let repeated: Vec<usize> = counts.filter(|&count| count > 1).collect();
    let product = body.iter().fold(10, |product, digit| {
        let sum = (digit + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    digits.len() == 11
        && body.first() != Some(&0)
        && matches!(repeated.as_slice(), [2 | 3])
        && (11 - product) % 10 == *check
}

/// The Spanish DNI and NIE. SOURCE: the check letter is the number modulo 23.
fn is_es_dni(value: &str) -> bool {
    let plain: String = value.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect();
    let Some((body, letter)) = plain.len().checked_sub(1).and_then(|end| plain.get(..end).zip(plain.get(end..))) else {
        return false;
    };
    let body = body.replacen('X', "0", 1).replacen('Y', "1", 1).replacen('Z', "2", 1);
    let letters = "TRWAGMYFPDXBNJZSQVHLCKE";
    body.parse::<usize>().ok().and_then(|number| letters.get(number % 23..=number % 23)) == Some(letter)
}

/// The Dutch BSN. SOURCE: the eleven-test, whose last weight is minus one.
fn is_nl_bsn(digits: &[u32]) -> bool {
    weighted(digits, &[9, 8, 7, 6, 5, 4, 3, 2, 10]).is_some_and(|sum| sum > 0 && sum.is_multiple_of(11))
}

/// The Brazilian CPF. SOURCE: two check digits modulo 11; a number that repeats a single digit is invalid.
fn is_br_cpf(digits: &[u32]) -> bool {
    let check = |count: usize| {
        let most = u32::try_from(count).unwrap_or(0) + 1;
        let sum: u32 = digits.iter().take(count).zip((2..=most).rev()).map(|(digit, weight)| digit * weight).sum();
        digits.get(count) == Some(&(sum * 10 % 11 % 10))
    };
    digits.len() == 11 && digits.iter().any(|digit| Some(digit) != digits.first()) && check(9) && check(10)
}

/// The Verhoeff check. SOURCE: J. Verhoeff, Error detecting decimal codes, 1969: the dihedral group D5.
fn verhoeff(digits: &[u32]) -> bool {
    const TURNED: [[u32; 10]; 8] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
        [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
        [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
        [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
        [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
        [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
        [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
    ];
    let product = |one: u32, other: u32| match (one < 5, other < 5) {
        (true, true) => (one + other) % 5,
        (true, false) => (one + other - 5) % 5 + 5,
        (false, true) => (one - 5 + 5 - other) % 5 + 5,
        (false, false) => (one + 5 - other) % 5,
    };
    let sum = digits.iter().rev().enumerate().fold(0, |sum, (place, &digit)| {
        let row = TURNED.get(place % 8);
        let turned = usize::try_from(digit).ok().and_then(|digit| row?.get(digit)).copied().unwrap_or(0);
        product(sum, turned)
    });
    digits.len() > 1 && sum == 0
}

/// The Italian codice fiscale. SOURCE: characters at odd positions have values of their own; the last letter is the
/// sum modulo 26.
fn is_it_code(value: &str) -> bool {
    const ODD: [u32; 36] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16,
        10, 22, 25, 24, 23,
    ];
    let Some(values) = value.chars().map(|c| c.to_digit(36)).collect::<Option<Vec<u32>>>() else { return false };
    let (Some(body), Some(&last)) = (values.get(..15), values.get(15)) else { return false };
    let sum: u32 = body
        .iter()
        .enumerate()
        .map(|(place, &value)| {
            let even = if value < 10 { value } else { value - 10 };
            let odd = usize::try_from(value).ok().and_then(|value| ODD.get(value)).copied().unwrap_or(0);
            if place % 2 == 0 { odd } else { even }
        })
        .sum();
    last == sum % 26 + 10
}

/// The weighted sum of digits, if there are as many digits as weights.
fn weighted(digits: &[u32], weights: &[u32]) -> Option<u32> {
    (digits.len() == weights.len()).then(|| digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum())
}

/// The number formed by the digits in `from..to`.
fn number(digits: &[u32], from: usize, to: usize) -> Option<u64> {
    Some(digits.get(from..to)?.iter().fold(0, |number, &digit| number * 10 + u64::from(digit)))
}

/// Returns whether a token looks random rather than like a word or a name: mixed digits and letters, many of them
/// different.
fn is_random(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let mut seen = [false; 256];
    for byte in value.bytes() {
        if let Some(seen) = seen.get_mut(usize::from(byte)) {
            *seen = true;
        }
    }
    let different = seen.iter().filter(|&&seen| seen).count();
    // Letters only, with capitals in places where words have none.
    let turns = value.as_bytes().windows(2).filter(|pair| {
        let [one, other] = pair else { return false };
        one.is_ascii_alphabetic()
            && other.is_ascii_alphabetic()
            && one.is_ascii_uppercase() != other.is_ascii_uppercase()
    });
    if digits < 2 && value.len() >= LONG_SECRET && turns.count() >= TURNS && is_literal(value) {
        return true;
    }
    digits >= 2 && letters >= 2 && different >= 8 && is_literal(value)
}

/// The length from which a value of letters only may be a secret, and the changes of case it then needs.
const LONG_SECRET: usize = 16;
const TURNS: usize = 4;

/// Returns whether a value is literal: not a variable, a placeholder or a word for "no value".
fn is_literal(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    !value.starts_with(['$', '<', '{', '%', '*', '(', '['])
        && !value.bytes().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X' | b'-' | b'_'))
        && !matches!(
            lower.trim_end_matches(['.', '!', '?', ')']),
            "null"
                | "none"
                | "true"
                | "false"
                | "required"
                | "optional"
                | "string"
                | "password"
                | "changeme"
                | "redacted"
                | "secret"
                | "hidden"
        )
}

fn is_mixed(value: &str) -> bool {
    let value = value.trim_end_matches(['.', '!', '?', ')', ',']);
    let digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let mark = value.bytes().any(|byte| matches!(byte, b'!' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'+' | b'@'));
    letter && (digit || mark) && !value.contains("://") && !value.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_passes_the_real_and_refuses_the_miscopied() {
        for (check, good, bad) in [
            (Check::Card, "4111 1111 1111 1111", "4111 1111 1111 1112"),
            (Check::Card, "378282246310005", "9782822463100005"),
            (Check::Iban, "DE89 3704 0044 0532 0130 00", "DE88 3704 0044 0532 0130 00"),
            (Check::Iban, "GB29NWBK60161331926819 then", "GB29NWBK6016133192681"),
            (Check::UsSsn, "536-22-8726", "666-22-8726"),
            (Check::UkNino, "AB123456C", "GB123456C"),
            (Check::DeTax, "86095742719", "86095742718"),
            (Check::FrNir, "2 55 08 14 168 025 38", "2 55 08 14 168 025 39"),
            (Check::EsDni, "12345678Z", "12345678A"),
            (Check::EsDni, "X1234567L", "X1234567A"),
            (Check::NlBsn, "111222333", "111222334"),
            (Check::BrCpf, "529.982.247-25", "111.111.111-11"),
            (Check::Verhoeff, "2341 2341 2346", "2341 2341 2347"),
            (Check::Ean13, "756.9217.0769.85", "756.9217.0769.84"),
            (Check::ItCode, "RSSMRA85T10A562S", "RSSMRA85T10A562T"),
            (Check::PlPesel, "44051401359", "44051401358"),
            (
                Check::PassportZone,
                "L898902C36UTO7408122F1204159ZE184226B<<<<<10",
                "L898902C36UTO7408122F1204159ZE184226B<<<<<11",
            ),
            (Check::Passport, "C01X00T47", "renewal"),
            (Check::Phone, "+1 415 555 0132", "+1 015 555 0132"),
            (Check::Phone, "0049 30 1234567", "+49 30 12"),
            (Check::Phone, "+49 30 1234567", "0049123456789"),
            (Check::Phone, "+49.30.1234567", "+52.520008"),
            (Check::NationalPhone, "01 42 68 53 00", "2026-11-28 10"),
            (Check::NationalPhone, "(11) 91234-5678", "192.168.100.23"),
            (Check::NationalPhone, "8 (495) 123-45-67", "98765"),
            (Check::NationalPhone, "13800138000", "000000000"),
            (Check::Phone, "+442079460958", "+8312345678"),
            (Check::Random, "9f8Za7Kq1LmN0pQr", "internationalisation"),
            (Check::Literal, "hunter", "$PASSWORD"),
            (Check::Mixed, "Summer2024", "tomorrow"),
        ] {
            assert!(passes(check, good), "{check:?} {good}");
            assert!(!passes(check, bad), "{check:?} {bad}");
        }
    }
}
