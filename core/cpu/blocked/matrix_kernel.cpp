// SPDX-License-Identifier: Apache-2.0
// matrix_kernel.cpp: Householder QR of one matrix in strips of 32 columns (LAPACK geqrt, gemqrt),
// compiled once for every instruction set.
//
// A strip is stored as a separate row-major matrix. A vector holds neighbouring columns of one row,
// so that sums over rows need no shuffles, and products with V read V as broadcast scalars, so that
// V is never packed. A strip stays in the second-level cache while all panels to its left are
// applied to it (left-looking):
//
//     R|R|R|R      load strip s of A, each column scaled by a power of two
//     v R|R|.      for panels p < s:  C := (I - V_p T_p' V_p') C          products.hpp
//     v v R|.      factor strip s in two leaves of 16 columns             panel.hpp
//     v v v|.      store strip s of R
//
// Q is also formed strip by strip: panels s, .., 0 are applied to strip s of the identity, panel p
// only to the rows from 32 p on, and the strip is stored. Worker w of a team takes the strips w,
// w + size, .. One worker computes a whole strip in a fixed order, so that the result does not
// depend on the number of workers.
#include "core/cpu/blocked/matrix_kernel.hpp"

#include "core/cpu/blocked/complex_strips.hpp"
#include "core/cpu/blocked/matrix_gram.hpp"
#include "core/cpu/blocked/panel.hpp"
#include "core/cpu/blocked/tile_products.hpp"

namespace qrtool::blocked {
namespace {

/// Matrices are stored in T, and computed in C.
template <class T, class C>
class Factorization : StripRows<T, C, 1> {
  using Base = StripRows<T, C, 1>;
  using Base::lanes, Base::load, Base::magnitude_bits, Base::panels_, Base::row_vectors,
      Base::rows_, Base::s_, Base::store, Base::strips_, Base::strips_of;
  using typename Base::Int, typename Base::IntT, typename Base::Row, typename Base::V,
      typename Base::VT;

 public:
  static constexpr bool has_tiles = TileProducts<C>::exist;

  /// Whether AMX tiles multiply. They gain nothing at 256x128 and a sixth at 512x256.
  static bool uses_tiles(const Shape& shape) {
    constexpr index_t least_rows = 256, least_columns = 192;
    return has_tiles && shape.m >= least_rows && shape.k >= least_columns;
  }

  static std::size_t workspace_bytes(const Shape& shape, int size) {
    const std::size_t bytes = Factorization(shape, nullptr, size).bytes_;
    const auto of_gram = static_cast<std::size_t>(GramR<C>::entries(shape.n)) * sizeof(C);
    return uses_gram(shape) && of_gram > bytes ? of_gram : bytes;
  }

  /// Whether R alone may come from A'A. It has a positive diagonal.
  static bool uses_gram(const Shape& shape) {
    return sizeof(T) == sizeof(C) && shape.q_cols == 0 && !shape.is_raw && shape.is_positive &&
           GramR<C>::fits(shape.m, shape.n);
  }

  static bool factor_gram(const Shape& shape, const Matrix<T>& matrix, std::byte* workspace,
                          Outcome& outcome) {
    if (!uses_gram(shape)) return false;
    GramR<C> gram(shape.n, reinterpret_cast<C*>(workspace));
    IntT largest{};
    if (!add_to_gram(matrix.a, shape, gram, largest) || !gram.factor()) return false;
    store_upper(gram, shape, matrix.r);
    outcome = {true, true, Base::exponent_of_largest(Base::largest_of(largest))};
    return true;
  }

  static void factor(const Shape& shape, const Matrix<T>& matrix, std::byte* workspace,
                     const Team& team) {
    Factorization f(shape, workspace, team.size);
    if (f.uses_tiles_) Tiles::begin();
    f.factor_strips(matrix, team);
    if (shape.q_cols > 0) f.form_q(matrix.q, team);
    if (f.uses_tiles_) Tiles::end();
  }

  static Outcome outcome(const Shape& shape, std::byte* workspace, int size) {
    return Factorization(shape, workspace, size).found();
  }

 private:
  using Tiles = TileProducts<C>;

  Factorization(const Shape& shape, std::byte* workspace, int size)
      : Base(shape, workspace, uses_tiles(shape) ? Tiles::block_rows : tile_rows),
        uses_tiles_(uses_tiles(shape)),
        own_strips_(group_size(strips_of(shape.n > shape.q_cols ? shape.n : shape.q_cols), 1)) {
    this->take(strip_, panels_ * rows_ * width);
    this->take(own_strip_, size * own_strips_ * rows_ * width);
    this->take(own_columns_, size * LeafColumns<C>::entries(rows_));
    if (uses_tiles_) this->take(split_, split_blocks(panels_));
    this->take(top_, panels_ * width * width);
    this->take(t_, panels_ * width * width);
    this->take_columns();
  }

  // ---- the order of the strips

  /// Returns the number of strips that a worker computes side by side, so that a panel is read once
  /// for all of them. The panel and the strips stay in the second-level cache. The result does not
  /// depend on their number.
  index_t group_size(index_t strips, int workers) const {
    constexpr index_t cache_bytes = 3 << 19, least_groups = 8, most = 4;
    const index_t strip_bytes = rows_ * width * static_cast<index_t>(sizeof(C));
    const index_t panel_bytes = uses_tiles_ ? 3 * strip_bytes : strip_bytes;
    if (panels_ * strip_bytes <= cache_bytes) return 1;
    for (index_t size = most; size > 1; --size) {
      if (panel_bytes + size * strip_bytes <= cache_bytes &&
          strips >= least_groups * size * workers)
        return size;
    }
    return 1;
  }

  struct Group {
    index_t first, end;
  };

  void factor_strips(const Matrix<T>& matrix, const Team& team) {
    const index_t size = group_size(strips_, team.size);
    for (index_t s = team.worker * size; s < strips_; s += team.size * size)
      factor_group(matrix, team, {s, lesser(s + size, strips_)});
  }

  /// Factors some strips. Panels that other workers are still making are applied to one strip after
  /// the other, so that the first of them is published early.
  void factor_group(const Matrix<T>& matrix, const Team& team, const Group& group) {
    const index_t recent = (team.size - 1) * (group.end - group.first);
    const index_t shared = lesser(group.first - recent, panels_);
    for (index_t s = group.first; s < group.end; ++s)
      this->load_strip(matrix.a, s, strip_of(s, team));
    for (index_t p = 0; p < shared; ++p) {
      wait_for(team, p);
      for (index_t s = group.first; s < group.end; ++s)
        apply_panel<true>(p, {true, true}, strip_of(s, team), vectors_of(s_.n - s * width));
    }
    for (index_t s = group.first; s < group.end; ++s) {
      C* strip = strip_of(s, team);
      for (index_t p = shared < 0 ? 0 : shared; p < lesser(s, panels_); ++p) {
        wait_for(team, p);
        apply_panel<true>(p, {true, true}, strip, vectors_of(s_.n - s * width));
      }
      if (s < panels_) {
        factor_panel(s, own_columns_ + team.worker * LeafColumns<C>::entries(rows_));
        if (team.size > 1) team.publish(team.self, s);
      }
      const auto row_of = [&](index_t i) { return strip + i * width; };
      if (s_.is_raw) {
        this->store_reflectors(matrix, s, strip, row_of,
                               [&](index_t j) { return t_[(s * width + j) * width + j]; });
      } else {
        this->store_r(matrix.r, s, row_of);
      }
    }
  }

  static void wait_for(const Team& team, index_t p) {
    if (team.size > 1) team.wait_for(team.self, p);
  }

  /// Q = H_0 .. H_k-1 I.
  void form_q(const Strided<T>& out, const Team& team) {
    wait_for(team, panels_ - 1);
    const index_t strips = strips_of(s_.q_cols), size = group_size(strips, team.size);
    for (index_t end = strips - team.worker * size; end > 0; end -= team.size * size)
      form_group(out, team, {end > size ? end - size : 0, end});
  }

  /// Forms some strips of Q. A strip of I is zero above its ones, and stays zero above row 32 p
  /// when panel p is applied.
  void form_group(const Strided<T>& out, const Team& team, const Group& group) {
    for (index_t s = group.first; s < group.end; ++s) {
      C* q = own_strip(s, team);
      for (index_t i = 0; i < rows_ * width; i += lanes) store(q + i, V{});
      for (index_t i = 0; i < lesser(width, s_.m - s * width); ++i)
        q[(s * width + i) * width + i] = 1;
    }
    for (index_t p = lesser(group.end, panels_) - 1; p >= 0; --p) {
      for (index_t s = p > group.first ? p : group.first; s < group.end; ++s)
        apply_panel<false>(p, {p == s, p != s}, own_strip(s, team),
                           vectors_of(s_.q_cols - s * width));
    }
    for (index_t s = group.first; s < group.end; ++s) this->store_q(out, s, own_strip(s, team));
  }

  /// Replaces the strip S by (I - V T V') S, or with T', where V is panel p.
  template <bool is_transposed>
  void apply_panel(index_t p, typename Products<C>::Rows filled, C* strip, int vectors) const {
    C* const c = strip + p * width * width;
    if (is_split(p)) {
      Tiles::template apply<is_transposed>(panel(p), split_ + split_blocks(p), filled, c);
    } else {
      Products<C>::template apply<is_transposed>(panel(p), filled, c, vectors);
    }
  }

  /// Whether the tiles apply panel p. Splitting the panel takes as long as the tiles save in one
  /// strip, or in more if it has few rows. The mode does not matter, so that it does not change R.
  bool is_split(index_t p) const {
    constexpr index_t least_rows = 96, least_strips = 3;
    return uses_tiles_ && rows_ - p * width >= least_rows && strips_ - 1 - p >= least_strips;
  }

  /// Returns how many blocks of rows of V the panels before panel p have. Panel p has `blocks` - p
  /// of them.
  index_t split_blocks(index_t p) const {
    const index_t blocks = rows_ / Tiles::block_rows;
    return p * blocks - p * (p - 1) / 2;
  }

  /// Returns the place of strip s among the places of this worker. Strips of one group never share
  /// a place.
  C* own_strip(index_t s, const Team& team) const {
    return own_strip_ + (team.worker * own_strips_ + s % own_strips_) * rows_ * width;
  }
  C* strip_of(index_t s, const Team& team) const {
    return s < panels_ ? strip_ + s * rows_ * width : own_strip(s, team);
  }

  static int vectors_of(index_t columns) {
    return static_cast<int>((lesser(columns, width) + lanes - 1) / lanes);
  }

  typename Products<C>::Panel panel(index_t p) const {
    const index_t j = p * width, rows = rows_ - j, top_rows = lesser(rows, width);
    return {top_ + p * width * width,
            strip_ + (p * rows_ + j + top_rows) * width,
            top_rows,
            rows - top_rows,
            lesser(width, round_up(s_.k - j, leaf)),
            t_ + p * width * width};
  }

  void factor_panel(index_t p, C* leaf_columns) {
    const index_t j = p * width;
    PanelQr<C>::factor({strip_ + (p * rows_ + j) * width, top_ + p * width * width,
                        t_ + p * width * width, leaf_columns},
                       rows_ - j, s_.n - j, lesser(width, s_.k - j));
    choose_signs(p);
    if (is_split(p)) Tiles::split(panel(p), split_ + split_blocks(p));
  }

  void choose_signs(index_t p) {
    const C* diagonal = strip_ + (p * rows_ + p * width) * width;
    for (index_t i = 0; i < width; ++i) this->choose_sign(p * width + i, diagonal[i * (width + 1)]);
  }

  // ---- R from A'A

  /// Forms A'A, and finds the largest entry of A. Returns false if R from it would probably be
  /// refused.
  [[gnu::noinline]] static bool add_to_gram(const Strided<const T>& a, const Shape& shape,
                                            GramR<C>& gram, IntT& largest) {
    for (index_t first = 0; first < shape.m; first += gram.most_rows) {
      const index_t rows = lesser(gram.most_rows, shape.m - first);
      for (index_t i = 0; i < rows; ++i) {
        for (index_t s = 0; s < strips_of(shape.n); ++s) {
          Row row;
          row.read(a.data + (first + i) * a.ld + s * width, lesser(width, shape.n - s * width));
#pragma GCC unroll 16
          for (int q = 0; q < row_vectors; ++q) {
            const IntT bits = magnitude_bits(row.x[q]);
            largest = bits > largest ? bits : largest;
            store(gram.strip(s) + i * width + q * lanes, __builtin_convertvector(row.x[q], V));
          }
        }
      }
      if (first == 0 && gram.looks_refused(rows)) return false;
      gram.add_rows(rows);
    }
    return true;
  }

  /// Stores R with zeros left of its diagonal. Adding 0 turns -0 into +0.
  [[gnu::noinline]] static void store_upper(const GramR<C>& gram, const Shape& shape,
                                            const Strided<T>& r) {
    for (index_t i = 0; i < shape.n; ++i) {
      T* to = r.data + i * r.ld;
      __builtin_memset(to, 0, static_cast<std::size_t>(i / width * width) * sizeof(T));
      for (index_t s = i / width; s < strips_of(shape.n); ++s) {
        Row row;
        for (int q = 0; q < row_vectors; ++q) {
          const V y = load(gram.row(i, s) + q * lanes);
          row.x[q] =
              __builtin_convertvector(select(lanes_from<Int>(i - s * width, q), y), VT) + VT{};
        }
        row.write(to + s * width, lesser(width, shape.n - s * width));
      }
    }
  }

  const bool uses_tiles_;
  const index_t own_strips_;     // of a worker: the most strips of a group
  C* strip_;                     // V\R, rows_ x 32 for every panel
  C* own_strip_;                 // rows_ x 32, own_strips_ for every worker
  C* own_columns_;               // the columns of a leaf for every worker
  typename Tiles::Rows* split_;  // V split for the tiles, block by block
  C* top_;                       // the first rows of V, 32 x 32 for every panel
  C* t_;                         // T transposed, 32 x 32 for every panel
};

template <class T, class C>
constexpr Routine<T> routine{
    Factorization<T, C>::workspace_bytes, Factorization<T, C>::factor_gram,
    Factorization<T, C>::factor, Factorization<T, C>::outcome,
    Factorization<T, C>::has_tiles ? Factorization<T, C>::uses_tiles : nullptr};
template <class T, class C>
constexpr Routine<T> complex_routine{ComplexStrips<T, C>::workspace_bytes, nullptr,
                                     ComplexStrips<T, C>::factor, ComplexStrips<T, C>::outcome,
                                     nullptr};

}  // namespace

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){
    QRTOOL_NAME(QRTOOL_TARGET),
    {routine<float, float>, routine<float, double>, routine<double, double>},
    {complex_routine<float, float>, complex_routine<float, double>,
     complex_routine<double, double>}};

}  // namespace qrtool::blocked
