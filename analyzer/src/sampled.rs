//! Times by samples, as fields of rows.

use serde::Serialize;

use crate::clock::Ns;

/// The time on the CPU that samples stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SampledTime {
    /// The number of samples.
    pub samples: u64,
    /// Time in user space, and in the kernel on its behalf.
    pub on_cpu_ns: Ns,
    /// The part of it in the kernel; `None` if samples are of user space only: then it is not in `on_cpu_ns`.
    pub on_cpu_kernel_ns: Option<Ns>,
    /// Half the width of the 95 % confidence interval of `on_cpu_ns`.
    pub on_cpu_ci95_ns: Ns,
}

/// Time on the CPU during the calls of an API, without the library calls made inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OnCpuOfApi {
    /// All of it.
    #[serde(flatten)]
    pub time: SampledTime,
    /// In the library itself.
    pub on_cpu_inside_ns: Ns,
    /// In the application, in callbacks from the library.
    pub on_cpu_application_ns: Ns,
    /// In other libraries.
    pub on_cpu_elsewhere_ns: Ns,
}
