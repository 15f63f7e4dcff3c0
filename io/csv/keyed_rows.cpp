// SPDX-License-Identifier: Apache-2.0
// keyed_rows.cpp: opens the text, and has the reader of matrices pass every row on.
#include "io/csv/keyed_rows.hpp"

#include <memory>

#include "core/text.hpp"
#include "io/csv/comments.hpp"
#include "io/csv/reader.hpp"
#include "io/file/foreign.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_bytes.hpp"

namespace qrtool {

Source read_keyed_rows(const InputSpec& spec, const std::string& keys, KeyedRows& rows) {
  const bool is_standard = is_standard_input(spec.path);
  if (!is_standard) require_text_file(spec.path);
  const int descriptor = open_rereadable(spec.path, spec.scratch);
  const std::string name(is_standard ? std::string(standard_input) : spec.path);
  refuse_foreign_format(head_of_text(descriptor, escape(name)), spec.path);
  const std::unique_ptr<Reader> reader = open_csv(descriptor, name, spec.csv,
                                                  {.is_one_table = true,
                                                   .memory_bytes = spec.memory_bytes,
                                                   .keys = keys,
                                                   .rows = &rows,
                                                   .needed = spec.needed_columns,
                                                   .only_needed = spec.only_needed_columns});
  reader->require_unchanged();
  return reader->source();
}

}  // namespace qrtool
