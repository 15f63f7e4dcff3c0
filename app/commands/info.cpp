// SPDX-License-Identifier: Apache-2.0
// info.cpp: `qrtool info` says what is in a file.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/info/info_text.hpp"
#include "app/process/console.hpp"
#include "app/process/gnuplot.hpp"
#include "app/run/verdict/outcome.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

void draw(const InfoOptions& o, const FileContents& contents) {
  const int histograms = histograms_of(contents.outputs);
  if (histograms == 0)
    throw InputError(fmt::format("{}: --plot draws the errors of an output of factor or solve, and "
                                 "there are none with a bar",
                                 escape(contents.file)),
                     "name the file that qrtool factor or qrtool solve has written");
  draw_picture(o.plot, o.force, {.width = 760, .height = 60 + 340 * histograms},
               plot_script(contents.outputs, contents.file));
  if (!o.quiet) print_message(fmt::format("drew {}", escape(o.plot)));
}

}  // namespace

ExitCode run_info(const InfoOptions& o) {
  if (!o.plot.empty()) check_picture(o.plot, o.force);
  const FileContents contents = look_into(o);
  if (!o.plot.empty()) draw(o, contents);
  if (o.json) return print(o, {.json = to_json(contents)});
  return print(o, {.text = text_of(contents, o.verbose)});
}

}  // namespace qrtool
