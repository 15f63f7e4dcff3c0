// SPDX-License-Identifier: Apache-2.0
// plot.hpp: the result of `qrtool bench` as a picture: times, and speed-ups below them.
#pragma once

#include <string>

#include "app/bench/table/table.hpp"
#include "app/process/gnuplot.hpp"

namespace qrtool {

/// Returns a script for gnuplot: the milliseconds of every contestant over the cases, the floor,
/// and bars with the speed-up of the tool. The floor is the time in which the bytes of a case move
/// at the given rate; 0 leaves it out.
std::string plot_script(const BenchResult& result, double bytes_per_second);
PictureSize plot_size(const BenchResult& result);

}  // namespace qrtool
