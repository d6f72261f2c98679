/* shared.h for programs outside the kernel. */
#pragma once
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#include "shared.h"
