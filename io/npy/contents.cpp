// SPDX-License-Identifier: Apache-2.0
// contents.cpp: lists the members of a .npz, and reads the report that this tool has put there.
#include "io/npy/contents.hpp"

#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "io/npy/archive.hpp"
#include "io/npy/reader.hpp"
#include "io/npy/writer.hpp"

namespace qrtool::npy {
namespace {

constexpr std::string_view report_prefix = "report_";

ReportNumbers read_numbers(const std::string& path, ArrayParts parts, const std::string& name) {
  ReportNumbers numbers{.name = name, .dims = parts.header.dims};
  const InputSpec spec{.path = path, .dataset = {}, .takes_vectors = true};
  const std::unique_ptr<Reader> reader =
      read_array(std::move(parts), name, /*is_vector=*/numbers.dims.size() == 1, spec);
  const Source& source = reader->source();
  numbers.values.resize(static_cast<std::size_t>(source.count() * source.m * source.n));
  if (!numbers.values.empty())
    reader->read(0, packed(numbers.values.data(), source.count(), source.m, source.n));
  return numbers;
}

}  // namespace

std::vector<Entry> list_npz_entries(const std::string& file) {
  const std::shared_ptr<Archive> archive = Archive::open(file, "");
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < archive->names().size(); ++i) {
    Entry entry{.name = archive->names()[i]};
    try {
      const Header header = archive->array(static_cast<index_t>(i)).header;
      entry.dims = header.dims;
      entry.stored_type = header.problem.empty() ? header.stored_type : "";
      entry.problem = obstacle_of(header, /*is_vector=*/false).text;
    } catch (const InputError& error) {
      entry.problem = error.what();
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<StoredOutput> read_npz_output(const std::string& path) {
  const std::shared_ptr<Archive> archive = Archive::open(path, "");
  const index_t record = archive->find(record_member);
  if (record < 0) return {};
  StoredOutput output{.attributes = attributes_in(archive->text(record))};
  if (output.attribute("format") != "qrtool") return {};
  for (std::size_t i = 0; i < archive->names().size(); ++i) {
    const std::string& name = archive->names()[i];
    if (!name.starts_with(report_prefix)) continue;
    ArrayParts parts = archive->array(static_cast<index_t>(i));
    if (parts.header.problem.empty() && parts.header.type.parts == 1)
      output.report.push_back(
          read_numbers(path, std::move(parts), name.substr(report_prefix.size())));
  }
  for (ReportNumbers& numbers : output.report)
    numbers.bar = std::strtod(output.attribute(numbers.name + bar_ending).c_str(), nullptr);
  return {std::move(output)};
}

}  // namespace qrtool::npy
