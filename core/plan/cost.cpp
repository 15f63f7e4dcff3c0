// SPDX-License-Identifier: Apache-2.0
// cost.cpp: reads and writes the table, and interpolates between its samples.
#include "core/plan/cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <tuple>

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

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string in_microseconds(double seconds) { return fmt::format("{:.4g}", seconds * 1e6); }

/// Takes the text before the first `end` away from `text`, and `end` as well.
std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

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

/// A line of the table. Samples are sorted by their members in this order.
struct Sample {
  CostTable::Reach reach = CostTable::Reach::grid;
  std::string_view variant;
  ElementType type = ElementType::float32;
  bool has_q = false;
  index_t n = 0, m = 0;
  std::string_view times;
};

/// Reads all but the times.
bool read_line(std::string_view text, Sample& line) {
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
  line.type = *found;
  line.has_q = q == "1";
  const bool has_shape = read(take_until(text, ','), line.m) && read(take_until(text, ','), line.n);
  line.times = text;
  return has_shape && line.m > 0 && line.n > 0;
}

Sample sample_of(std::string_view line) {
  Sample sample;
  read_line(line, sample);
  return sample;
}

std::vector<BatchTime> times_of(std::string_view line) {
  std::vector<BatchTime> times;
  read_times(sample_of(line).times, times);
  return times;
}

index_t rows_of(std::string_view line) { return sample_of(line).m; }
index_t columns_of(std::string_view line) { return sample_of(line).n; }
auto kind_of(std::string_view line) {
  const Sample s = sample_of(line);
  return std::tuple(s.reach, s.variant, s.type, s.has_q);
}
auto key_of(std::string_view line) {
  const Sample s = sample_of(line);
  return std::tuple(s.reach, s.variant, s.type, s.has_q, s.n, s.m);
}

using Lines = std::span<const std::string_view>;

/// The samples of a variant with the type of `p`, with Q or without it.
Lines of_kind(Lines all, CostTable::Reach reach, std::string_view variant, const Problem& p) {
  const auto found =
      std::ranges::equal_range(all, std::tuple(reach, variant, p.type, p.wants_q()), {}, kind_of);
  return {found.begin(), found.end()};
}

Lines of_columns(Lines kind, index_t n) {
  const auto found = std::ranges::equal_range(kind, n, {}, columns_of);
  return {found.begin(), found.end()};
}

/// The logarithm of the seconds of p.count matrices of p.m rows, from samples of one number of
/// columns.
double at_rows(Lines samples, const Problem& p) {
  const auto above = std::ranges::lower_bound(samples, p.m, {}, rows_of);
  if (above != samples.end() && rows_of(*above) == p.m) return at_count(times_of(*above), p.count);
  if (above != samples.end() && above != samples.begin()) {
    const auto below = std::prev(above);
    const double share = share_of(p.m, rows_of(*below), rows_of(*above));
    return (1 - share) * at_count(times_of(*below), p.count) +
           share * at_count(times_of(*above), p.count);
  }
  const std::string_view outermost = above == samples.end() ? samples.back() : samples.front();
  const std::vector<BatchTime> times = times_of(outermost);
  const index_t n = columns_of(outermost);
  const double scaled =
      at_count(times, p.count) + more_operations(p, p.m, n, rows_of(outermost), n);
  // Less than one matrix of the smallest shape no batch takes.
  return std::max(scaled, at_count(times, 1));
}

/// The line of the very shape; null where it is no sample.
const std::string_view* find_own(Lines all, std::string_view variant, const Problem& p) {
  for (const auto reach : {CostTable::Reach::shape, CostTable::Reach::grid}) {
    const Lines columns = of_columns(of_kind(all, reach, variant, p), p.n);
    const auto own = std::ranges::lower_bound(columns, p.m, {}, rows_of);
    if (own != columns.end() && rows_of(*own) == p.m) return &*own;
  }
  return nullptr;
}

/// A hash of words of eight bytes, one after another.
class Hash {
 public:
  void take(std::uint64_t word) { state_ = mix_bits(state_ ^ word); }
  void take(std::string_view text) {
    take(text.size());
    for (; !text.empty(); text.remove_prefix(std::min(sizeof(std::uint64_t), text.size()))) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data(), std::min(sizeof(word), text.size()));
      take(word);
    }
  }
  std::string text() const { return fmt::format("{:016x}", state_); }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace

void CostTable::add(std::string_view line) {
  // Most come in order.
  if (lines_.empty() || key_of(lines_.back()) < key_of(line)) {
    lines_.push_back(line);
    return;
  }
  const auto at = std::ranges::lower_bound(lines_, key_of(line), {}, key_of);
  if (key_of(*at) == key_of(line))
    *at = line;
  else
    lines_.insert(at, line);
}

void CostTable::add(std::string_view variant, const Problem& shape,
                    const std::vector<BatchTime>& times, Reach reach) {
  std::string line =
      fmt::format("{}{},{},{},{},{}", reach == Reach::shape ? alone_mark : "", variant,
                  name_of(shape.type), shape.wants_q() ? 1 : 0, shape.m, shape.n);
  for (const BatchTime& time : times)
    line += fmt::format("{}{}:{}", &time == times.data() ? ',' : ' ', time.count,
                        in_microseconds(time.seconds));
  add(texts_.emplace_back(std::move(line)));
}

bool CostTable::has(std::string_view variant, const Problem& p) const {
  return find_own(lines_, variant, p) != nullptr;
}

double CostTable::seconds(std::string_view variant, const Problem& p) const {
  const Lines kind = of_kind(lines_, Reach::grid, variant, p);
  const std::string_view* const own = find_own(lines_, variant, p);
  if (own == nullptr && kind.empty()) return never;
  if (p.is_empty()) return 0;
  if (own != nullptr) return std::exp(at_count(times_of(*own), p.count));
  const auto above = std::ranges::lower_bound(kind, p.n, {}, columns_of);
  if (above != kind.end() && columns_of(*above) == p.n)
    return std::exp(at_rows(of_columns(kind, p.n), p));
  if (above != kind.end() && above != kind.begin()) {
    const index_t below_n = columns_of(*std::prev(above)), above_n = columns_of(*above);
    const double share = share_of(p.n, below_n, above_n);
    return std::exp((1 - share) * at_rows(of_columns(kind, below_n), p) +
                    share * at_rows(of_columns(kind, above_n), p));
  }
  const index_t n = columns_of(above == kind.end() ? kind.back() : kind.front());
  const Lines outermost = of_columns(kind, n);
  Problem one = p;
  one.count = 1;
  const double scaled = at_rows(outermost, p) + more_operations(p, p.m, p.n, p.m, n);
  return std::exp(std::max(scaled, at_rows(outermost, one)));
}

std::string CostTable::text() const {
  std::string text = fmt::format("{}{}\n{}\n", first_words, device_, line_names);
  for (const std::string_view line : lines_) text.append(line) += '\n';
  return text;
}

CostTable CostTable::view(std::string_view text) {
  CostTable table{std::string(take_until(text, '\n').substr(first_words.size()))};
  take_until(text, '\n');
  while (!text.empty()) table.lines_.push_back(take_until(text, '\n'));
  return table;
}

CostTable CostTable::from_text(std::string_view given, const std::string& shown) {
  CostTable table{std::string()};
  std::string_view text = table.texts_.emplace_back(given);
  const std::string_view first = take_until(text, '\n');
  if (!first.starts_with(first_words) || take_until(text, '\n') != line_names)
    throw InputError(fmt::format("{} is no table of rates", shown),
                     "qrtool bench --rates FILE writes one");
  table.device_ = first.substr(first_words.size());
  for (int number = 3; !text.empty(); ++number) {
    const std::string_view line = take_until(text, '\n');
    Sample sample;
    std::vector<BatchTime> times;
    if (!read_line(line, sample) || !read_times(sample.times, times))
      throw InputError(fmt::format("{}: line {} is no sample: '{}'", shown, number, escape(line)),
                       "qrtool bench --rates FILE --force writes the table anew");
    table.add(line);
  }
  return table;
}

std::string CostTable::digest() const {
  Hash hash;
  hash.take(device_);
  for (const std::string_view line : lines_) hash.take(line);
  return hash.text();
}

}  // namespace qrtool
