// SPDX-License-Identifier: Apache-2.0
// verify_answer.cpp: the lines in their order.
#include "app/verify/verify_answer.hpp"

#include <fmt/format.h>

#include "app/process/console.hpp"
#include "core/text.hpp"

namespace qrtool {

void print_answer(const VerifyOptions& o, const VerifyAnswer& answer) {
  if (o.quiet && answer.failed > 0) print_failure(answer.verdict);
  if (o.quiet || o.json) return;
  std::string text = answer.worst;
  for (const std::string& line : answer.listed) text += line + "\n";
  text += answer.after_list;
  const auto left = answer.failed - std::ssize(answer.listed);
  if (!o.all && left > 0)
    text += fmt::format("and {} more; --all lists them\n", format_count(left));
  write_stdout(text + (answer.failed > 0 ? in_red(answer.verdict) : answer.verdict) + "\n");
}

}  // namespace qrtool
