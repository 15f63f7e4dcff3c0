// SPDX-License-Identifier: Apache-2.0
// gnuplot.hpp: draws pictures with gnuplot, which is asked to by a script on its standard input.
#pragma once

#include <string>
#include <string_view>

namespace qrtool {

/// Whether there is a gnuplot in the PATH.
bool has_gnuplot();

/// Checks before any work that a picture can be drawn. Errors: UsageError if the name ends neither
/// in .svg nor in .png; OutputError if there is no gnuplot, or if the file exists without `force`.
void check_picture(const std::string& path, bool force);

/// The size of a picture in pixels.
struct PictureSize {
  int width = 900, height = 640;
};

/// Runs a script and writes the picture to a file, which appears complete or not at all. Errors: as
/// check_picture(); OutputError if gnuplot fails.
void draw_picture(const std::string& path, bool force, PictureSize size, const std::string& script);

/// Draws the picture of a script as an SVG document.
std::string draw_svg(PictureSize size, const std::string& script);

/// Returns a text in gnuplot's quotes, without characters that have a meaning there.
std::string gnuplot_text(std::string_view text);

}  // namespace qrtool
