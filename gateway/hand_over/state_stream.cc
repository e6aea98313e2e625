// SPDX-License-Identifier: Apache-2.0
#include "gateway/hand_over/state_stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace rocegw::hand_over {
namespace {

constexpr uint32_t kMostDepth = 16;
// Times that are no distance from now: "never", and the initial value, which several classes
// compare with.
constexpr int64_t kNeverMark = std::numeric_limits<int64_t>::max();
constexpr int64_t kUnsetMark = std::numeric_limits<int64_t>::min();
// Limit of times from now, 73 years: differences of times that are read do not overflow.
constexpr int64_t kMostAhead = int64_t{1} << 61;
constexpr const char* kNotFinite = "number is not finite";

}  // namespace

StateStream::StateStream(std::vector<uint8_t>& out, TimePoint now, const StateVersions& reader)
    : out_(&out), reader_(&reader), at_(out.size()), now_(now) {}

StateStream::StateStream(std::span<const uint8_t> in, TimePoint now)
    : in_(in), end_(in.size()), now_(now) {}

void StateStream::MakeSpace(size_t length) {
  constexpr size_t kLeast = 256;
  const size_t ahead = depth_ == 0 ? 0 : std::max(kLeast, at_);
  out_->resize(at_ + length + ahead);
}

void StateStream::ReadZeros(void* bytes, size_t length) {
  Fail("record is shorter than its fields");
  std::memset(bytes, 0, length);
}

void StateStream::Value(float& value) {
  value = std::bit_cast<float>(Carry(std::bit_cast<uint32_t>(value)));
  if (!Require(std::isfinite(value), kNotFinite)) value = 0;
}

void StateStream::Value(double& value) {
  value = std::bit_cast<double>(Carry(std::bit_cast<uint64_t>(value)));
  if (!Require(std::isfinite(value), kNotFinite)) value = 0;
}

void StateStream::Value(TimePoint& value) {
  int64_t ahead = 0;
  if (value == kNever) {
    ahead = kNeverMark;
  } else if (value == TimePoint{}) {
    ahead = kUnsetMark;
  } else if (__builtin_sub_overflow(value.ns, now_.ns, &ahead)) {
    // More than 292 years away: as far as a time can be.
    ahead = value.ns < 0 ? kUnsetMark + 1 : kNeverMark - 1;
  }
  Value(ahead);
  if (!reading()) return;
  if (ahead == kNeverMark) {
    value = kNever;
  } else if (ahead == kUnsetMark) {
    value = TimePoint{};
  } else {
    value = now_ + Duration{std::clamp(ahead, -kMostAhead, kMostAhead)};
  }
}

void StateStream::Value(Duration& value) {
  Value(value.ns);
  value.ns = std::clamp(value.ns, -kMostAhead, kMostAhead);
}

void StateStream::LowTime(uint32_t& low) {
  const auto now = static_cast<uint32_t>(now_.ns);
  low = now - Carry(now - low);
}

uint32_t StateStream::Count(size_t count, uint32_t most) {
  if (!reading()) {
    Require(count <= most, "more elements than a reader takes");
    return Carry(static_cast<uint32_t>(count));
  }
  const uint32_t number = Carry(uint32_t{0}, most);
  // Each element has at least one byte, so no input makes a reader allocate more than its length
  // times the size of an element.
  return Require(number <= end_ - at_, "more elements than bytes") ? number : 0;
}

StateRecord::StateRecord(StateStream& state, StateKind kind) : state_(state) {
  const StateKindInfo& info = kStateKinds[*IndexOf(kind)];
  state.Require(++state.depth_ <= kMostDepth, "records are nested too deeply");
  if (!state.reading()) {
    version_ = std::min(NewestVersion(info), state.reader_->Of(kind));
    state.Require(version_ >= info.oldest, "the reader's version of a record is too old");
  }
  const uint16_t number = state.Carry(static_cast<uint16_t>(kind));
  version_ = state.Carry(version_);
  const uint32_t length = state.Carry(uint32_t{0});
  fields_at_ = state.at_;
  if (!state.reading()) return;
  outer_end_ = state.end_;
  state.Require(number == static_cast<uint16_t>(kind), "record of another kind");
  state.Require(version_ <= NewestVersion(info), "record of a newer version");
  state.Require(version_ >= info.oldest, "record of a version that is too old");
  if (state.Require(length <= state.end_ - state.at_, "record is longer than the state"))
    state.end_ = state.at_ + length;
}

StateRecord::~StateRecord() {
  --state_.depth_;
  if (state_.reading()) {
    state_.Require(state_.at_ == state_.end_, "record is longer than its fields");
    if (state_.ok()) state_.end_ = outer_end_;
    return;
  }
  const size_t length = state_.at_ - fields_at_;
  state_.Require(length <= std::numeric_limits<uint32_t>::max(), "record is too long");
  const auto written = static_cast<uint32_t>(length);
  std::memcpy(state_.out_->data() + fields_at_ - sizeof written, &written, sizeof written);
  if (state_.depth_ == 0) state_.out_->resize(state_.at_);
}

}  // namespace rocegw::hand_over
