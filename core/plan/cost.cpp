// SPDX-License-Identifier: Apache-2.0
// cost.cpp: reads and writes the table, and interpolates between its samples.
#include "core/plan/cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <tuple>

#include "core/error.hpp"
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

/// Returns the value at x on the straight line between two logarithms.
double between(index_t x, index_t from, double at_from, index_t to, double at_to) {
  const double share = (log_of(x) - log_of(from)) / (log_of(to) - log_of(from));
  return (1 - share) * at_from + share * at_to;
}

/// Returns the logarithm of the seconds of `count` matrices.
double at_count(const std::vector<BatchTime>& times, index_t count) {
  const auto above = std::ranges::lower_bound(times, count, {}, &BatchTime::count);
  if (above == times.end())
    return std::log(times.back().seconds) + log_of(count) - log_of(times.back().count);
  if (above->count == count || above == times.begin()) return std::log(above->seconds);
  const BatchTime& below = *std::prev(above);
  return between(count, below.count, std::log(below.seconds), above->count,
                 std::log(above->seconds));
}

/// Returns `p` with other extents.
Problem with_extents(Problem p, index_t count, index_t m, index_t n) {
  p.count = count;
  p.m = m;
  p.n = n;
  return p;
}

/// Returns, as a logarithm, how much longer p.m x p.n takes than m x n by its operations.
double more_operations(const Problem& p, index_t m, index_t n) {
  return std::log(operations(with_extents(p, 1, p.m, p.n))) -
         std::log(operations(with_extents(p, 1, m, n)));
}

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// Takes the text before the first `end` away from `text`, and `end` as well.
std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

/// Reads pairs of a batch size and a time, such as "1:36.1 32:40.2", with increasing sizes. Returns
/// false if the text has another form.
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
  return !times.empty();
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

std::vector<BatchTime> times_of(const Sample& sample) {
  std::vector<BatchTime> times;
  read_times(sample.times, times);
  return times;
}

auto kind_of(const Sample& s) { return std::tuple(s.reach, s.variant, s.type, s.has_q); }
auto key_of(const Sample& s) { return std::tuple_cat(kind_of(s), std::tuple(s.n, s.m)); }

/// Sorted lines of a table, each with its end.
using Lines = std::string_view;

Sample first_of(Lines lines) { return sample_of(take_until(lines, '\n')); }
Sample last_of(Lines lines) {
  lines.remove_suffix(1);
  return sample_of(lines.substr(lines.rfind('\n') + 1));
}

/// Returns the length in bytes of the leading lines for which `is_before` is true, by bisection.
template <class IsBefore>
std::size_t bytes_before(Lines lines, IsBefore is_before) {
  std::size_t from = 0, to = lines.size();
  while (from < to) {
    const std::size_t middle = from + (to - from) / 2;
    const std::size_t start = std::max(from, lines.substr(0, middle).rfind('\n') + 1);
    const std::size_t end = lines.find('\n', start);
    if (is_before(sample_of(lines.substr(start, end - start))))
      from = end + 1;
    else
      to = start;
  }
  return from;
}

/// The lines whose key, which `key` gives, is `wanted`.
template <class Key, class KeyOf>
Lines equal_lines(Lines lines, const Key& wanted, KeyOf key) {
  lines.remove_prefix(bytes_before(lines, [&](const Sample& s) { return key(s) < wanted; }));
  return lines.substr(0, bytes_before(lines, [&](const Sample& s) { return key(s) == wanted; }));
}

/// Returns the samples of a variant with the type of `p`, with Q or without it.
Lines of_kind(Lines all, CostTable::Reach reach, std::string_view variant, const Problem& p) {
  return equal_lines(all, std::tuple(reach, variant, p.type, p.wants_q()), kind_of);
}

index_t rows_of(const Sample& s) { return s.m; }
index_t columns_of(const Sample& s) { return s.n; }

/// The logarithm of the seconds where `extent` is x: `at` gives it for the samples below and above,
/// and `outside` beyond all of them, from the outermost one.
template <class At, class Outside>
double at_extent(Lines samples, index_t (*extent)(const Sample&), index_t x, At at,
                 Outside outside) {
  const std::size_t fewer = bytes_before(samples, [&](const Sample& s) { return extent(s) < x; });
  const Lines below = samples.substr(0, fewer), above = samples.substr(fewer);
  if (above.empty()) return outside(last_of(below));
  const Sample high = first_of(above);
  if (extent(high) == x) return at(high);
  if (below.empty()) return outside(high);
  const Sample low = last_of(below);
  return between(x, extent(low), at(low), extent(high), at(high));
}

/// Returns the logarithm of the seconds of p.count matrices of p.m rows, from samples of p.n
/// columns.
double at_rows(Lines samples, const Problem& p) {
  const auto at = [&](const Sample& s) { return at_count(times_of(s), p.count); };
  return at_extent(samples, rows_of, p.m, at, [&](const Sample& s) {
    // Less than one matrix of the smallest shape no batch takes.
    return std::max(at(s) + more_operations(p, s.m, s.n), at_count(times_of(s), 1));
  });
}

/// Returns the logarithm of the seconds of `p`, from samples of one kind.
double at_columns(Lines kind, const Problem& p) {
  const auto at = [&](index_t n, index_t count) {
    return at_rows(equal_lines(kind, n, columns_of), with_extents(p, count, p.m, n));
  };
  return at_extent(
      kind, columns_of, p.n, [&](const Sample& s) { return at(s.n, p.count); },
      [&](const Sample& s) {
        return std::max(at(s.n, p.count) + more_operations(p, p.m, s.n), at(s.n, 1));
      });
}

/// Returns the sample of the very shape; none if it is no sample.
std::optional<Sample> find_own(Lines all, std::string_view variant, const Problem& p) {
  for (const auto reach : {CostTable::Reach::shape, CostTable::Reach::grid}) {
    const Lines own =
        equal_lines(all, std::tuple(reach, variant, p.type, p.wants_q(), p.n, p.m), key_of);
    if (!own.empty()) return first_of(own);
  }
  return std::nullopt;
}

}  // namespace

void CostTable::add(std::string_view variant, const Problem& shape,
                    const std::vector<BatchTime>& times, Reach reach) {
  std::string line =
      fmt::format("{}{},{},{},{},{},", reach == Reach::shape ? alone_mark : "", variant,
                  name_of(shape.type), shape.wants_q() ? 1 : 0, shape.m, shape.n);
  for (const BatchTime& time : times)
    line += fmt::format("{}{}:{:.4g}", &time == times.data() ? "" : " ", time.count,
                        time.seconds * 1e6);
  add(line);
}

void CostTable::add(std::string_view line) {
  const auto key = key_of(sample_of(line));
  // Most come in order.
  const bool is_last = own_.empty() || key_of(last_of(own_)) < key;
  const std::size_t at =
      is_last ? own_.size() : bytes_before(own_, [&](const Sample& s) { return key_of(s) < key; });
  const std::size_t replaced = equal_lines(Lines(own_).substr(at), key, key_of).size();
  own_.replace(at, replaced, std::string(line) + '\n');
}

bool CostTable::has(std::string_view variant, const Problem& p) const {
  return find_own(lines(), variant, p).has_value();
}

double CostTable::seconds(std::string_view variant, const Problem& p) const {
  const std::optional<Sample> own = find_own(lines(), variant, p);
  const Lines kind = own ? Lines() : of_kind(lines(), Reach::grid, variant, p);
  if (!own && kind.empty()) {
    if (p.wants_q()) return never;
    Problem with_q = p;
    with_q.mode = Mode::reduced;
    return seconds(variant, with_q);
  }
  if (p.is_empty()) return 0;
  return std::exp(own ? at_count(times_of(*own), p.count) : at_columns(kind, p));
}

double CostTable::nearest_seconds(std::string_view name, const Problem& p) const {
  const auto apart = [](index_t one, index_t other) {
    return std::abs(std::log2(static_cast<double>(one) / static_cast<double>(other)));
  };
  std::pair<double, index_t> least(never, 0);
  double seconds = never;
  for (Lines rest = of_kind(lines(), Reach::grid, name, p); !rest.empty();) {
    const Sample sample = sample_of(take_until(rest, '\n'));
    const BatchTime time = times_of(sample).front();
    const double distance =
        apart(p.count, time.count) + apart(p.m, sample.m) + apart(p.n, sample.n);
    // Of equally near ones the one with fewer rows.
    if (std::pair(distance, sample.m) >= least) continue;
    least = {distance, sample.m};
    seconds =
        time.seconds * operations(p) / operations(with_extents(p, time.count, sample.m, sample.n));
  }
  return seconds;
}

std::string CostTable::text() const {
  return fmt::format("{}{}\n{}\n{}", first_words, device_, line_names, lines());
}

CostTable CostTable::view(std::string_view text, std::string_view digest) {
  CostTable table{std::string(take_until(text, '\n').substr(first_words.size()))};
  take_until(text, '\n');
  table.compiled_ = text;
  table.digest_ = digest;
  return table;
}

CostTable CostTable::from_text(std::string_view text, const std::string& shown) {
  const std::string_view first = take_until(text, '\n');
  if (!first.starts_with(first_words) || take_until(text, '\n') != line_names)
    throw InputError(fmt::format("{} is no table of rates", shown),
                     "qrtool bench --rates FILE writes one");
  CostTable table{std::string(first.substr(first_words.size()))};
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
  if (!digest_.empty()) return std::string(digest_);
  return fmt::format("{:016x}", hash_of(text()));
}

}  // namespace qrtool
