// SPDX-License-Identifier: Apache-2.0
// further.hpp: a way to factor, by further passes in float64, the matrices that the guard of a
// variant by Gram matrices has refused. The heads of its kernels say why it is right.
#pragma once

#include <algorithm>

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// Some matrices of a batch of which A'A alone is not enough.
struct FurtherJob {
  const Problem& problem;
  const Params& params;  // of tune()
  index_t count;         // matrices of the list, or more; of the batch for Finds::routes
  const Buffer& list;    // their numbers in the batch, int
  const Buffer& a;       // input, packed row-major matrices of m x n
  const Buffer& q;       // output, m x n, if Q is wanted
  const Buffer& r;       // output, n x n
  const Buffer& routes;  // ROUTE_FURTHER_PASSES where Q and R are stored, else untouched
  const Buffer& slots;   // work memory, one slot or more
  const Buffer* slab_sums = nullptr;  // of A'A of all matrices, where the variant has them
  Buffer listed = {};                 // how many matrices the list has, int
};

/// The passes `first` .. end - 1; the first one of a job is 0. Where each matrix has a slot, the
/// passes may be launched range by range, so that the host can leave out those that no matrix
/// needs. A range also finds out whether the pass after it is needed.
struct PassRange {
  int first, end;
};

/// How the kernels find the refused matrices: `count` of the list; as many of the list as `listed`
/// says; or by the routes of all matrices. In the last two cases the host need not know how many
/// there are, and one launch takes all passes.
enum class Finds { list, listed, routes };

struct FurtherRoute {
  std::string_view file;
  /// Whether the kernels take the matrices of a problem on a device.
  bool (*fits)(const Problem&, const Limits&);
  /// Defines of the kernels, beside STORED and REAL = double.
  Params (*tune)(const Problem&, const Limits&);
  /// The work memory of a matrix in flight, and the largest useful number of them. One is enough.
  Slots (*slots)(const Problem&);
  void (*enqueue)(const FurtherJob&, PassRange, Launcher&);
  Finds finds = Finds::list;
  /// Kernels that take long to build.
  std::span<const std::string_view> heavy_kernels = {};
};

/// The shift, the noise and the ends for a problem whose Gram matrices are sums that are rounded
/// `terms` times, one after the other; the places in a slot are 0.
FurtherShape further_shape(const Problem& problem, index_t terms);

/// How many passes most matrices need, and how many there are at most.
struct PassCounts {
  int usual, most;
};
PassCounts further_pass_counts(const Problem& problem);

/// The largest ||Q'Q - I||_F^2, as computed, with which a stored Q is good: the bar less the error
/// of the sums, at most m u ||Q'Q||_F. Of complex matrices it is the norm of the real form, sqrt(2)
/// times their own. In float64 that is more than the bar, and h u sqrt(n) is taken with the
/// hypothesis of gpu/gram/steps/departure.clh.
double most_measured_departure(const Problem& problem);
/// The numbers for kernels that take all passes of a matrix at once (gram_group.cl, gram.cl).
GroupPasses passes_of_refused(const Problem& problem);

/// Whether the device has room for a slot beside a matrix of the problem.
bool has_room_for_slot(const Slots& slots, const Problem& problem, const Limits& limits);

/// Calls wave(first, count) for matrices `first` .. of the list, as many at a time as there are
/// slots in the work memory of the job.
template <class Wave>
void in_waves(const FurtherJob& job, const Slots& slots, const Wave& wave) {
  const auto most = static_cast<index_t>(job.slots.bytes() / slots.bytes);
  for (index_t first = 0; first < job.count; first += most) {
    wave(first, std::min(most, job.count - first));
  }
}

/// The bytes of the slots for `count` matrices: as many as there is room for, of which `free_bytes`
/// are left beside other buffers. 0 where not even one fits.
std::size_t further_bytes(const FurtherRoute& route, const Problem& problem, const Limits& limits,
                          std::size_t free_bytes, index_t count);

}  // namespace qrtool
