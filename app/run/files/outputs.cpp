// SPDX-License-Identifier: Apache-2.0
// outputs.cpp: creates, fills and commits them; tells the signal handler what is on disk.
#include "app/run/files/outputs.hpp"

#include <fmt/format.h>

#include "app/process/signals.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "io/open/output.hpp"

namespace qrtool {

Outputs Outputs::create(const OutputSpec& spec, const std::string& report) {
  set_interrupt_message("qrtool: interrupted; nothing written\n");
  Outputs outputs;
  outputs.factors = create_output(spec);
  if (!report.empty()) outputs.report = create_report_file(report, spec.force, spec.report_columns);
  return outputs;
}

Outputs Outputs::create_in(OutputFile& file, const OutputSpec& spec) {
  Outputs outputs;
  outputs.factors = file.add(spec);
  outputs.is_part = true;
  outputs.name = spec.name;
  return outputs;
}

void Outputs::write_report(index_t first, std::span<const MatrixReport> lines) {
  factors->write_report(first, lines);
  if (report) report->write(lines);
  for (auto at = static_cast<std::size_t>(first); const MatrixReport& line : lines)
    if (at < ranks.size()) ranks[at++] = line.rank;
}

void Outputs::commit() {
  if (is_part) {
    FileSet none;
    factors->finish(none);
    return;
  }
  set_interrupt_message(interrupted_while_finishing);
  FileSet files;
  factors->finish(files);
  if (report) report->finish(files);
  files.commit();
  set_interrupt_message(interrupted_when_complete);
}

Limits limits_beside(const std::string& file, std::size_t bytes, Limits limits) {
  const std::size_t counted = counted_file_bytes(bytes, limits.host_bytes);
  if (counted >= limits.host_bytes)
    throw LimitError(
        fmt::format("{}: reading and writing files take {} of memory; the limit is {}",
                    escape(file), format_bytes(bytes), format_bytes(limits.host_bytes)),
        hint_of_memory(bytes));
  limits.reserve_for_files(counted);
  return limits;
}

}  // namespace qrtool
