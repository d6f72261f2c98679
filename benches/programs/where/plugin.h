/* What a plug-in is to its host. */
#pragma once
#include <cstddef>

struct Filter {
	virtual ~Filter() = default;
	virtual void apply(float *values, std::size_t count) = 0;
};
