// Loads a plug-in and calls it by virtual functions, between work of its own.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "plugin.h"

int main(int, char **arguments)
{
	void *plugin = dlopen(arguments[1], RTLD_NOW);
	if (!plugin) {
		std::fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	auto make = reinterpret_cast<Filter *(*)()>(dlsym(plugin, "make_filter"));
	Filter *filter = make();
	std::vector<float> values(100000);
	float sum = 0;
	for (int round = 0; round < 1600; round++) {
		unsigned state = round;
		for (float &value : values)
			value = float((state = state * 1664525 + 1013904223) >> 8);
		filter->apply(values.data(), values.size());
		std::nth_element(values.begin(), values.begin() + 5000, values.end());
		sum += values[5000];
	}
	delete filter;
	std::printf("%g\n", sum);
}
