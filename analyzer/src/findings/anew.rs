//! What is made anew for each item although it can be kept.

use std::collections::BTreeMap;

use super::system::symbol;
use super::{Evidence, Finding, FindingKind};
use crate::clock::Ns;

/// Fewer calls in a process are those of a program that prepares itself.
const SEVERAL: u64 = 20;

/// Functions that make something which is made to be used many times.
pub(super) struct Prepared {
    /// Their names, without underscores at the start and versions at the end.
    functions: &'static [&'static str],
    /// What a thread that calls them does.
    does: &'static str,
    /// What to do instead.
    instead: &'static str,
}

/// Each entry says why making it costs more than using it. Functions that are to be called once for each item (`fopen`, `malloc`,
/// `EVP_DigestInit`), or that only find what was made before (`g_quark_from_string`), are none. `dlopen` and `getaddrinfo` have
/// findings of their own. What a program makes without a call of a library is not seen: a `std::regex` is compiled by templates.
const TABLE: &[Prepared] = &[
    // The pattern is parsed and made an automaton, or code: often more than to match a line.
    Prepared {
        functions: &[
            "regcomp",
            "pcre_compile",
            "pcre_compile2",
            "pcre_study",
            "pcre2_compile_8",
            "pcre2_compile_16",
            "pcre2_compile_32",
            "pcre2_jit_compile_8",
            "pcre2_jit_compile_16",
            "pcre2_jit_compile_32",
            "onig_new",
            "g_regex_new",
            "uregex_open",
            "hs_compile",
            "ZN3re23RE2C1EPKc",
            "ZN3re23RE2C1ESt17basic_string_viewIcSt11char_traitsIcEE",
        ],
        does: "makes a pattern",
        instead: "Compiled once, it matches as often as is wanted",
    },
    // The conversion's module is looked for, and its tables are set up.
    Prepared {
        functions: &["iconv_open", "ucnv_open"],
        does: "opens a conversion of characters",
        instead: "Opened once, it converts as often as is wanted",
    },
    // Files of the locale are looked for and mapped; a collator or a formatter reads its rules.
    Prepared {
        functions: &["setlocale", "newlocale", "ucol_open", "udat_open", "unum_open"],
        does: "sets a locale up",
        instead: "Made once, it can be used as often as is wanted (uselocale, and functions with _l)",
    },
    // A file, or a service, is opened and searched each time: the C library keeps nothing.
    Prepared {
        functions: &[
            "getpwnam",
            "getpwnam_r",
            "getpwuid",
            "getpwuid_r",
            "getgrnam",
            "getgrnam_r",
            "getgrgid",
            "getgrgid_r",
            "getservbyname",
            "getservbyname_r",
            "getprotobyname",
            "getgrouplist",
        ],
        does: "looks up users, groups or services",
        instead: "The answers can be kept",
    },
    // A context has its own tables; the certificates of the system are read and parsed.
    Prepared {
        functions: &[
            "SSL_CTX_new",
            "SSL_CTX_load_verify_locations",
            "SSL_CTX_load_verify_file",
            "SSL_CTX_set_default_verify_paths",
            "SSL_CTX_use_certificate_chain_file",
            "X509_STORE_set_default_paths",
            "X509_STORE_load_locations",
            "gnutls_certificate_set_x509_system_trust",
            "gnutls_certificate_set_x509_trust_file",
        ],
        does: "sets up what connections need for their encryption",
        instead: "One context serves all connections",
    },
    // Providers are searched by name and properties, with locks.
    Prepared {
        functions: &[
            "EVP_CIPHER_fetch",
            "EVP_MD_fetch",
            "EVP_MAC_fetch",
            "EVP_KDF_fetch",
            "EVP_SIGNATURE_fetch",
            "EVP_KEYMGMT_fetch",
            "EVP_RAND_fetch",
        ],
        does: "fetches an algorithm",
        instead: "Fetched once, it can be used as often as is wanted",
    },
    // Up to some hundred KB are asked for and cleared.
    Prepared {
        functions: &[
            "deflateInit_",
            "deflateInit2_",
            "inflateInit_",
            "inflateInit2_",
            "ZSTD_createCCtx",
            "ZSTD_createDCtx",
            "LZ4F_createCompressionContext",
            "BZ2_bzCompressInit",
            "BZ2_bzDecompressInit",
            "lzma_stream_encoder",
            "lzma_easy_encoder",
        ],
        does: "makes a compressor",
        instead: "It can be used again for the next piece (deflateReset and its like)",
    },
    // The text is parsed, and a plan is made.
    Prepared {
        functions: &[
            "sqlite3_prepare",
            "sqlite3_prepare_v2",
            "sqlite3_prepare_v3",
            "PQprepare",
            "mysql_stmt_prepare",
        ],
        does: "prepares a statement",
        instead: "Prepared once, it can be run with other values (sqlite3_reset, sqlite3_bind)",
    },
    // The schema is read, or the other end logs the client in.
    Prepared {
        functions: &[
            "sqlite3_open",
            "sqlite3_open_v2",
            "PQconnectdb",
            "PQconnectdbParams",
            "PQsetdbLogin",
            "mysql_real_connect",
            "redisConnect",
        ],
        does: "opens a connection to a database",
        instead: "It can stay open",
    },
    // A handle keeps connections and names of hosts for the next transfer.
    Prepared {
        functions: &["curl_easy_init", "curl_multi_init"],
        does: "makes a handle for transfers",
        instead: "Kept, it also keeps its connections",
    },
    // Tables and buffers are made.
    Prepared {
        functions: &["XML_ParserCreate", "XML_ParserCreateNS", "XML_ParserCreate_MM"],
        does: "makes a parser",
        instead: "It can be used again (XML_ParserReset)",
    },
    // A document is parsed and checked.
    Prepared {
        functions: &[
            "xmlSchemaParse",
            "xmlRelaxNGParse",
            "xmlXPathCompile",
            "xsltParseStylesheetFile",
        ],
        does: "parses a schema, a path or a stylesheet",
        instead: "Parsed once, it can be used as often as is wanted",
    },
    // Ways to compute are tried.
    Prepared {
        functions: &[
            "fftw_plan_dft_1d",
            "fftw_plan_dft_2d",
            "fftw_plan_dft_r2c_1d",
            "fftw_plan_dft_c2r_1d",
            "fftwf_plan_dft_1d",
            "fftwf_plan_dft_r2c_1d",
            "fftwf_plan_dft_c2r_1d",
            "sws_getContext",
        ],
        does: "makes a plan",
        instead: "Made once, it can be carried out as often as is wanted",
    },
];

/// Which entry of the table a function is in.
pub(super) fn prepared(name: &str) -> Option<&'static Prepared> {
    let name = without_version(name);
    TABLE.iter().find(|entry| entry.functions.contains(&name))
}

/// Functions of ICU have its version in their name: `ucol_open_72`.
fn without_version(name: &str) -> &str {
    let (start, end) = name.rsplit_once('_').unwrap_or((name, ""));
    let is_version = !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit());
    let is_of_icu = start.ends_with("_open");
    if is_version && is_of_icu { start } else { name }
}

/// What a thread spends in functions of one entry.
#[derive(Default)]
struct Spent {
    /// Calls, and time, of each function.
    by_api: BTreeMap<u32, (u64, f64)>,
    waiting_ns: f64,
}

impl Spent {
    fn add(&mut self, other: &Self) {
        for (&api, &(calls, ns)) in &other.by_api {
            let sum = self.by_api.entry(api).or_default();
            *sum = (sum.0.saturating_add(calls), sum.1 + ns);
        }
        self.waiting_ns += other.waiting_ns;
    }

    fn ns(&self) -> f64 {
        self.by_api.values().map(|&(_, ns)| ns).sum()
    }

    /// The function that takes longest, and its calls.
    fn longest(&self) -> Option<(u32, u64)> {
        let longest = self.by_api.iter().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
        longest.map(|(&api, &(calls, _))| (api, calls))
    }
}

/// Finds functions that prepare something and are called again and again.
pub(super) fn made(evidence: &Evidence<'_>) -> Vec<Finding> {
    let outermost = outermost(evidence);
    // By group, process, entry and thread.
    type Key = (u32, usize, usize);
    let mut all: BTreeMap<Key, BTreeMap<u32, Spent>> = BTreeMap::new();
    for (number, thread) in (0..).zip(&evidence.analysis.threads) {
        let Some(&group) = evidence.groups.of_thread.get(number as usize) else { continue };
        for part in &thread.contexts {
            let Some((entry, first)) = outermost[part.context as usize] else { continue };
            let spent = all.entry((group, thread.process, entry)).or_default();
            let spent = spent.entry(number).or_default();
            spent.waiting_ns += part.wait_ns.as_f64();
            // What is called inside is in its time.
            if first == part.context {
                let api = evidence.analysis.contexts[first as usize].api;
                let sum = spent.by_api.entry(api).or_default();
                *sum = (sum.0.saturating_add(part.calls), sum.1 + part.total_ns.as_f64());
            }
        }
    }
    let found = all.into_iter().filter_map(|((group, _, entry), threads)| {
        let mut sum = Spent::default();
        threads.values().for_each(|spent| sum.add(spent));
        let (api, calls) = sum.longest()?;
        let (&thread, most) = threads.iter().max_by(|a, b| a.1.ns().total_cmp(&b.1.ns()))?;
        let saves_ns = most.ns();
        if calls < SEVERAL || !evidence.is_material_to(thread, saves_ns) {
            return None;
        }
        let Prepared { does, instead, .. } = TABLE[entry];
        let kind = FindingKind::MadeAgain {
            calls,
            all_ns: Ns::from_f64(sum.ns()),
            waiting_ns: Ns::from_f64(sum.waiting_ns),
            does,
            instead,
        };
        Some(evidence.finding(group, vec![thread], Some(api), saves_ns, kind))
    });
    // Of several processes that do the same, the one that gains most.
    let mut once: BTreeMap<(u32, Option<u32>), Finding> = BTreeMap::new();
    for finding in found {
        let key = (finding.group, finding.api);
        if once.get(&key).is_none_or(|known| known.saves_ns < finding.saves_ns) {
            once.insert(key, finding);
        }
    }
    once.into_values().collect()
}

/// Of each context, the outermost one around it that prepares something, and its entry.
fn outermost(evidence: &Evidence<'_>) -> Vec<Option<(usize, u32)>> {
    let contexts = &evidence.analysis.contexts;
    let apis = &evidence.analysis.apis;
    let entry = |api: u32| {
        let name = symbol(evidence, Some(api));
        let name = without_version(name);
        TABLE.iter().position(|entry| entry.functions.contains(&name))
    };
    let entries: Vec<Option<usize>> = (0..apis.len() as u32).map(entry).collect();
    let around = |context: u32| {
        let above = std::iter::successors(Some(context), |&at| contexts[at as usize].parent);
        let found = above.filter_map(|at| Some((entries[contexts[at as usize].api as usize]?, at)));
        found.last()
    };
    (0..contexts.len() as u32).map(around).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_in_one_entry() {
        let all: Vec<&str> = TABLE.iter().flat_map(|entry| entry.functions).copied().collect();
        for name in &all {
            assert!(!name.starts_with('_'), "{name} would not be found");
            assert_eq!(all.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
        assert!(prepared("ucol_open_72").is_some());
        assert!(prepared("deflateInit2_").is_some());
        assert!(prepared("fopen").is_none() && prepared("open_72").is_none());
    }
}
