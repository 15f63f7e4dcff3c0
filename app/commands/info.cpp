// SPDX-License-Identifier: Apache-2.0
// info.cpp: `qrtool info` says what is in a file.
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/info/info_text.hpp"
#include "app/process/console.hpp"

namespace qrtool {

ExitCode run_info(const InfoOptions& o) {
  const FileContents contents = look_into(o);
  if (o.json) {
    write_json(to_json(contents));
  } else if (!o.quiet) {
    write_stdout(text_of(contents, o.verbose));
  }
  return ExitCode::good;
}

}  // namespace qrtool
