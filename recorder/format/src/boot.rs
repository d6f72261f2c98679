//! What tells one start of the machine from another.

use core::ffi::CStr;

/// The file with the present one, as a text of 32 hexadecimal digits between hyphens.
pub const FILE: &CStr = c"/proc/sys/kernel/random/boot_id";

/// Returns what [`FILE`] says; zero if that is no such text, as where it can't be read.
#[must_use]
pub fn parse(text: &[u8]) -> [u8; 16] {
    let mut id = [0; 16];
    let mut digits = text.iter().filter_map(|&byte| char::from(byte).to_digit(16));
    for byte in &mut id {
        let (Some(high), Some(low)) = (digits.next(), digits.next()) else { return [0; 16] };
        *byte = (high << 4 | low) as u8;
    }
    id
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_boot_id_is_32_digits() {
        let text = b"01234567-89ab-cdef-FEDC-ba9876543210\n";
        let id = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210_u128;
        assert_eq!(parse(text), id.to_be_bytes());
        for end in 0..text.len() - 2 {
            assert_eq!(parse(&text[..end]), [0; 16]);
        }
        assert_eq!(parse(b"nothing of this kind"), [0; 16]);
    }
}
