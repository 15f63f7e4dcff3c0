// SPDX-License-Identifier: Apache-2.0
// gnuplot.hpp: draws pictures with gnuplot, which is asked to by a script on its standard input.
#pragma once

#include <string>
#include <string_view>

namespace qrtool {

/// Whether there is a gnuplot in the PATH.
bool has_gnuplot();

/// Checks before any work that a picture can be drawn. Errors: UsageError where the name ends
/// neither in .svg nor in .png; OutputError where there is no gnuplot, or the file exists without
/// `force`.
void check_picture(const std::string& path, bool force);

/// The size of a picture in pixels.
struct PictureSize {
  int width = 900, height = 640;
};

/// Draws what the script says, and writes it to a file that appears complete or not at all. Errors:
/// as check_picture(); OutputError where gnuplot fails.
void draw_picture(const std::string& path, bool force, PictureSize size, const std::string& script);

/// Draws the picture of a script as an SVG document.
std::string draw_svg(PictureSize size, const std::string& script);

/// A text as gnuplot quotes it, without characters that begin something else.
std::string gnuplot_text(std::string_view text);

}  // namespace qrtool
