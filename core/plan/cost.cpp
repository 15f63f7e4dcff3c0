// SPDX-License-Identifier: Apache-2.0
// cost.cpp: reads and writes the table, and interpolates between its samples.
#include "core/plan/cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>

#include "core/error.hpp"
#include "core/matrix/matrices.hpp"
#include "core/problem/operations.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

constexpr std::string_view first_words = "# qrtool.rates/1 ";
constexpr std::string_view line_names = "variant,type,q,m,n,matrices:microseconds";
/// Begins the line of a sample that is for its shape alone.
constexpr std::string_view alone_mark = "=";
constexpr double never = std::numeric_limits<double>::infinity();

double log_of(index_t extent) { return std::log(static_cast<double>(extent)); }

/// How far x is from `from` to `to`, between 0 and 1, on a logarithmic scale.
double share_of(index_t x, index_t from, index_t to) {
  return (log_of(x) - log_of(from)) / (log_of(to) - log_of(from));
}

/// The logarithm of the seconds of `count` matrices.
double at_count(const std::vector<BatchTime>& times, index_t count) {
  const auto above = std::ranges::lower_bound(times, count, {}, &BatchTime::count);
  if (above == times.end())
    return std::log(times.back().seconds) + log_of(count) - log_of(times.back().count);
  if (above->count == count || above == times.begin()) return std::log(above->seconds);
  const BatchTime& below = *std::prev(above);
  const double share = share_of(count, below.count, above->count);
  return (1 - share) * std::log(below.seconds) + share * std::log(above->seconds);
}

/// How much longer m x n takes than `from_m` x `from_n` by its operations, as a logarithm.
double more_operations(const Problem& like, index_t m, index_t n, index_t from_m, index_t from_n) {
  const auto of = [&](index_t rows, index_t columns) {
    Problem p = like;
    p.count = 1;
    p.m = rows;
    p.n = columns;
    return std::log(operations(p));
  };
  return of(m, n) - of(from_m, from_n);
}

/// The logarithm of the seconds of p.count matrices of p.m rows and of the `n` columns that all of
/// these samples have.
double at_rows(const std::map<index_t, std::vector<BatchTime>>& samples, const Problem& p,
               index_t n) {
  const auto above = samples.lower_bound(p.m);
  if (above != samples.end() && above->first == p.m) return at_count(above->second, p.count);
  if (above != samples.end() && above != samples.begin()) {
    const auto below = std::prev(above);
    const double share = share_of(p.m, below->first, above->first);
    return (1 - share) * at_count(below->second, p.count) +
           share * at_count(above->second, p.count);
  }
  const auto outermost = above == samples.end() ? std::prev(above) : above;
  const double scaled =
      at_count(outermost->second, p.count) + more_operations(p, p.m, n, outermost->first, n);
  // Less than one matrix of the smallest shape no batch takes.
  return std::max(scaled, at_count(outermost->second, 1));
}

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string in_microseconds(double seconds) { return fmt::format("{:.4g}", seconds * 1e6); }

double as_written(double seconds) {
  double microseconds = 0;
  read(in_microseconds(seconds), microseconds);
  return microseconds * 1e-6;
}

/// Takes the text before the first `end` away from `text`, and `end` as well.
std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

/// One line of the table.
struct Line {
  CostTable::Reach reach = CostTable::Reach::grid;
  std::string_view variant;
  Problem shape;
  std::vector<BatchTime> times;
};

/// "1:36.1 32:40.2": counts that grow from 1 on, and times.
bool read_times(std::string_view text, std::vector<BatchTime>& times) {
  while (!text.empty()) {
    std::string_view pair = take_until(text, ' ');
    BatchTime time;
    const bool is_count = read(take_until(pair, ':'), time.count);
    if (!is_count || !read(pair, time.seconds)) return false;
    if (time.count <= (times.empty() ? 0 : times.back().count)) return false;
    if (!(time.seconds > 0 && time.seconds < 1e12)) return false;
    time.seconds *= 1e-6;
    times.push_back(time);
  }
  return !times.empty() && times.front().count == 1;
}

bool read_line(std::string_view text, Line& line) {
  if (text.starts_with(alone_mark)) {
    line.reach = CostTable::Reach::shape;
    text.remove_prefix(alone_mark.size());
  }
  line.variant = take_until(text, ',');
  const std::string_view type = take_until(text, ','), q = take_until(text, ',');
  const auto named = [&](ElementType t) { return name_of(t) == type; };
  const auto* const found = std::ranges::find_if(element_types, named);
  if (line.variant.empty() || (q != "0" && q != "1")) return false;
  if (found == element_types.end()) return false;
  line.shape.type = *found;
  line.shape.mode = q == "1" ? Mode::reduced : Mode::r;
  const bool has_shape =
      read(take_until(text, ','), line.shape.m) && read(take_until(text, ','), line.shape.n);
  return has_shape && line.shape.m > 0 && line.shape.n > 0 && read_times(text, line.times);
}

/// A hash of words, one after another.
class Hash {
 public:
  void take(std::uint64_t word) { state_ = mix_bits(state_ ^ word); }
  void take(std::string_view text) {
    for (const char c : text) take(static_cast<unsigned char>(c));
    take(text.size());
  }
  std::string text() const { return fmt::format("{:016x}", state_); }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace

void CostTable::add(std::string_view variant, const Problem& shape,
                    const std::vector<BatchTime>& times, Reach reach) {
  Times rounded = times;
  for (BatchTime& time : rounded) time.seconds = as_written(time.seconds);
  auto& samples = reach == Reach::grid ? grid_ : alone_;
  samples[{std::string(variant), shape.type, shape.wants_q()}][shape.n][shape.m] =
      std::move(rounded);
}

const CostTable::Times* CostTable::find_own(std::string_view variant, const Problem& p) const {
  for (const auto* samples : {&alone_, &grid_}) {
    const auto of_kind = samples->find({std::string(variant), p.type, p.wants_q()});
    if (of_kind == samples->end()) continue;
    const auto with_columns = of_kind->second.find(p.n);
    if (with_columns == of_kind->second.end()) continue;
    const auto own = with_columns->second.find(p.m);
    if (own != with_columns->second.end()) return &own->second;
  }
  return nullptr;
}

bool CostTable::has(std::string_view variant, const Problem& p) const {
  return find_own(variant, p) != nullptr;
}

double CostTable::seconds(std::string_view variant, const Problem& p) const {
  const auto found = grid_.find({std::string(variant), p.type, p.wants_q()});
  const Times* const own = find_own(variant, p);
  if (own == nullptr && found == grid_.end()) return never;
  if (p.is_empty()) return 0;
  if (own != nullptr) return std::exp(at_count(*own, p.count));
  const Samples& samples = found->second;
  const auto above = samples.lower_bound(p.n);
  if (above != samples.end() && above->first == p.n)
    return std::exp(at_rows(above->second, p, p.n));
  if (above != samples.end() && above != samples.begin()) {
    const auto below = std::prev(above);
    const double share = share_of(p.n, below->first, above->first);
    return std::exp((1 - share) * at_rows(below->second, p, below->first) +
                    share * at_rows(above->second, p, above->first));
  }
  const auto outermost = above == samples.end() ? std::prev(above) : above;
  Problem one = p;
  one.count = 1;
  const index_t n = outermost->first;
  const double scaled = at_rows(outermost->second, p, n) + more_operations(p, p.m, p.n, p.m, n);
  return std::exp(std::max(scaled, at_rows(outermost->second, one, n)));
}

std::string CostTable::text() const {
  std::string text = fmt::format("{}{}\n{}\n", first_words, device_, line_names);
  const auto append = [&](const std::map<Kind, Samples>& all, std::string_view mark) {
    for (const auto& [kind, by_columns] : all) {
      for (const auto& [n, by_rows] : by_columns) {
        for (const auto& [m, times] : by_rows) {
          text += fmt::format("{}{},{},{},{},{}", mark, kind.variant, name_of(kind.type),
                              kind.has_q ? 1 : 0, m, n);
          for (const BatchTime& time : times)
            text += fmt::format("{}{}:{}", &time == times.data() ? ',' : ' ', time.count,
                                in_microseconds(time.seconds));
          text += '\n';
        }
      }
    }
  };
  append(grid_, "");
  append(alone_, alone_mark);
  return text;
}

CostTable CostTable::from_text(std::string_view text, const std::string& shown) {
  const std::string_view first = take_until(text, '\n');
  if (!first.starts_with(first_words) || take_until(text, '\n') != line_names)
    throw InputError(fmt::format("{} is no table of rates", shown),
                     "qrtool bench --rates FILE writes one");
  CostTable table{std::string(first.substr(first_words.size()))};
  for (int number = 3; !text.empty(); ++number) {
    const std::string_view sample = take_until(text, '\n');
    Line line;
    if (!read_line(sample, line))
      throw InputError(fmt::format("{}: line {} is no sample: '{}'", shown, number, escape(sample)),
                       "qrtool bench --rates FILE --force writes the table anew");
    // A number of text() has the digits that add() leaves.
    auto& samples = line.reach == Reach::grid ? table.grid_ : table.alone_;
    samples[{std::string(line.variant), line.shape.type, line.shape.wants_q()}][line.shape.n]
           [line.shape.m] = std::move(line.times);
  }
  return table;
}

std::string CostTable::digest() const {
  // Not of text(): formatting the numbers takes longer than many a run.
  Hash hash;
  hash.take(device_);
  for (const auto* all : {&grid_, &alone_}) {
    hash.take(all->size());
    for (const auto& [kind, by_columns] : *all) {
      hash.take(kind.variant);
      hash.take(static_cast<std::uint64_t>(kind.type) * 2 + (kind.has_q ? 1 : 0));
      for (const auto& [n, by_rows] : by_columns) {
        for (const auto& [m, times] : by_rows) {
          for (const index_t number : {n, m, std::ssize(times)})
            hash.take(static_cast<std::uint64_t>(number));
          for (const BatchTime& time : times) {
            hash.take(static_cast<std::uint64_t>(time.count));
            hash.take(std::bit_cast<std::uint64_t>(time.seconds));
          }
        }
      }
    }
  }
  return hash.text();
}

}  // namespace qrtool
