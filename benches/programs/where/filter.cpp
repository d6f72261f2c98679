// A plug-in: a recursive filter, and sines from the mathematical library.
#include <cmath>

#include "plugin.h"

namespace {
struct Smooth : Filter {
	void apply(float *values, std::size_t count) override
	{
		float last = 0;
		for (std::size_t i = 0; i < count; i++) {
			for (int tap = 0; tap < 4; tap++)
				last += 0.1f * (values[i] - last);
			values[i] = i % 4 ? last : float(std::sin(double(last)));
		}
	}
};
}

extern "C" Filter *make_filter()
{
	return new Smooth;
}
