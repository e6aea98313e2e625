// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/congestion.h"

#include <cstddef>
#include <iterator>

namespace rocegw::flow {
namespace {

// A fixed window: what is in flight never exceeds it, except that one packet may always be.
constexpr CcAlgorithm kStaticAlgorithm = {
    .name = "static",
    .init = [](CcState& s, const CcConfig& c, TimePoint) { s.fixed.window = c.window_bytes; },
    .on_sent = [](CcState&, uint64_t, TimePoint) {},
    .on_feedback = [](CcState&, const CcFeedback&, TimePoint) {},
    .on_cnp = [](CcState&, TimePoint) {},
    .on_loss = [](CcState&, TimePoint) {},
    .on_deadline = [](CcState&, TimePoint) {},
    .deadline = [](const CcState&) { return kNever; },
    .gate =
        [](const CcState& s, uint64_t in_flight) {
          return SendGate{in_flight >= s.fixed.window ? 0 : s.fixed.window - in_flight,
                          TimePoint{}};
        },
};

constexpr const CcAlgorithm* kAlgorithms[] = {&kStaticAlgorithm};
static_assert(std::size(kAlgorithms) == static_cast<size_t>(CcKind::kCount));

}  // namespace

const CcAlgorithm& AlgorithmOf(CcKind kind) { return *kAlgorithms[static_cast<size_t>(kind)]; }

}  // namespace rocegw::flow
