//! Time by samples, as it is in rows.

use serde::Serialize;

use crate::clock::Ns;

/// Time on the CPU that samples stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SampledTime {
    /// Samples.
    pub samples: u64,
    /// Time: in user space, and in the kernel on behalf of what is there.
    pub on_cpu_ns: Ns,
    /// The part of it in the kernel; `None` where samples are of user space alone: then it is not in `on_cpu_ns`.
    pub on_cpu_kernel_ns: Option<Ns>,
    /// Half the width of the 95 % confidence interval of `on_cpu_ns`.
    pub on_cpu_ci95_ns: Ns,
}

/// Where the processor was during the calls of an API, without the library calls made inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OnCpuOfApi {
    /// All of it.
    #[serde(flatten)]
    pub time: SampledTime,
    /// In the library itself.
    pub on_cpu_inside_ns: Ns,
    /// In the application, which the library called back.
    pub on_cpu_application_ns: Ns,
    /// In other libraries.
    pub on_cpu_elsewhere_ns: Ns,
}
