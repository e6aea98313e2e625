// SPDX-License-Identifier: Apache-2.0
// Stream of state records by which a gateway hands its objects over to the gateway that replaces
// it. A record is {kind: u16, version: u16, length: u32, fields}; all numbers are little-endian and
// have fixed sizes; records may contain records. There are no memory images and no pointers. Times
// are relative to `now`, so the pause between writing and reading delays every timer by its length.
//
// Each class has one function HandOver(StateStream&) that serves both directions: it names its
// fields in order, and the stream writes or reads them. A class lists all its members in a
// structured binding, which fails to compile if a member is missing:
//
//   void RttEstimator::HandOver(StateStream& state) {
//     auto& [smoothed, variation, minimum] = *this;
//     state(smoothed, variation, minimum);
//   }
//
// The input of a reader is foreign: each count has a limit, each read is within its record, and the
// first malformed field fails the stream with a reason. Reads after a failure return zeros. The
// caller asks ok() at the end and discards all objects if it is false. Not thread-safe.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/hand_over/state_versions.h"

namespace rocegw::hand_over {

class StateStream {
 public:
  // Writes to the end of `out`, in versions that the reader knows. Both outlive the stream. Inside
  // of a record, `out` is longer than what is written.
  StateStream(std::vector<uint8_t>& out, TimePoint now, const StateVersions& reader);
  // Reads `in`, which outlives the stream.
  StateStream(std::span<const uint8_t> in, TimePoint now);
  StateStream(std::vector<uint8_t>& out, TimePoint now, const StateVersions&& reader) = delete;
  StateStream(const StateStream&) = delete;
  StateStream& operator=(const StateStream&) = delete;

  bool reading() const { return out_ == nullptr; }
  // Writer: versions that the reader knows; reader: nullptr.
  const StateVersions* reader() const { return reader_; }
  TimePoint now() const { return now_; }
  bool ok() const { return failure_ == nullptr; }
  // Returns the reason of the first failure, a string literal; nullptr: none.
  const char* failure() const { return failure_; }
  void Fail(const char* reason) {
    if (failure_ == nullptr) failure_ = reason;
    end_ = at_;  // reads beyond the record's end return zeros
  }
  // Fails the stream unless `holds`. Returns ok().
  bool Require(bool holds, const char* reason) {
    if (!holds) Fail(reason);
    return ok();
  }
  // Reader: returns true if all input is consumed.
  bool at_end() const { return at_ == in_.size(); }

  // Writes or reads the values in order.
  template <typename... T>
  void operator()(T&... values) {
    (Value(values), ...);
  }
  // Writer: writes the value and returns it. Reader: returns the value that it reads. For
  // bit-fields, which no reference can refer to.
  template <typename T>
  T Carry(T value) {
    Value(value);
    return value;
  }
  // The same for a value of at most `most`.
  template <typename T>
  T Carry(T value, T most) {
    Value(value);
    if (value <= most) return value;
    Fail("value out of range");
    return T{};
  }
  template <typename E>
  requires std::is_enum_v<E>
  void Enum(E& value, E last) {
    using Number = std::underlying_type_t<E>;
    value = static_cast<E>(Carry(static_cast<Number>(value), static_cast<Number>(last)));
  }
  // Low 32 bits of a time in nanoseconds, at most 4.2 s from now.
  void LowTime(uint32_t& low);

  // Writer: writes the number of elements and returns it. Reader: returns the number of elements to
  // read, at most `most`.
  uint32_t Count(size_t count, uint32_t most);
  // Writes or reads the elements by each(element); `most` limits their number.
  template <typename T, uint32_t kInline, typename F>
  void Ring(GrowingRing<T, kInline>& ring, uint32_t most, F each) {
    const uint32_t count = Count(ring.size(), most);
    if (reading()) ring.clear();
    for (uint32_t i = 0; i < count && ok(); ++i) {
      if (reading()) ring.push_back(T());
      each(ring[i]);
    }
  }
  template <typename T, typename F>
  void Vector(std::vector<T>& vector, uint32_t most, F each) {
    const uint32_t count = Count(vector.size(), most);
    if (reading()) vector.clear();
    for (uint32_t i = 0; i < count && ok(); ++i) {
      if (reading()) vector.push_back(T());
      each(vector[i]);
    }
  }
  void Bytes(std::span<uint8_t> bytes) {
    if (!bytes.empty()) Copy(bytes.data(), bytes.size());
  }

 private:
  friend class StateRecord;

  void Copy(void* bytes, size_t length) {
    if (out_ != nullptr) {
      if (length > out_->size() - at_) MakeSpace(length);
      std::memcpy(out_->data() + at_, bytes, length);
    } else if (length <= end_ - at_) {
      std::memcpy(bytes, in_.data() + at_, length);
    } else {
      return ReadZeros(bytes, length);
    }
    at_ += length;
  }
  // Writer: makes `out` longer, inside of a record by more than `length`, so that few values pay
  // for the growth.
  void MakeSpace(size_t length);
  void ReadZeros(void* bytes, size_t length);

  template <typename T>
  requires std::integral<T> &&(!std::same_as<T, bool>)void Value(T& value) {
    // Values are copied as they lie in memory.
    static_assert(std::endian::native == std::endian::little);
    Copy(&value, sizeof value);
  }
  void Value(bool& value) { value = Carry<uint8_t>(value ? 1 : 0, 1) != 0; }
  // Numbers that are not finite fail the stream, because arithmetic with them has no bounds.
  void Value(float& value);
  void Value(double& value);
  void Value(Duration& value);
  void Value(TimePoint& value);
  void Value(Psn& value) { value = Psn(Carry(value.value, kPsnMask)); }
  void Value(Qpn& value) { value.value = Carry(value.value, 0xFFFFFFu); }
  void Value(MemoryKey& value) { Value(value.value); }
  void Value(SessionId& value) { Value(value.value); }
  void Value(SlotHandle& value) { (*this)(value.index, value.generation); }

  std::vector<uint8_t>* out_ = nullptr;  // nullptr: the stream reads
  const StateVersions* reader_ = nullptr;
  std::span<const uint8_t> in_;
  size_t at_ = 0;   // next byte
  size_t end_ = 0;  // reader: end of the innermost record
  uint32_t depth_ = 0;
  TimePoint now_;
  const char* failure_ = nullptr;
};

// Scope of a record: the constructor writes or reads its head, the destructor ends it. A reader
// fails if the record is of another kind, of a version that this program does not know, or longer
// than its fields.
class StateRecord {
 public:
  StateRecord(StateStream& state, StateKind kind);
  ~StateRecord();
  StateRecord(const StateRecord&) = delete;
  StateRecord& operator=(const StateRecord&) = delete;

  // Returns the version of the record. Fields that a later version added are handed over only in
  // records of that version: if (record.version() >= 2) state(added_);
  uint16_t version() const { return version_; }

 private:
  StateStream& state_;
  uint16_t version_ = 0;
  size_t fields_at_ = 0;  // position of the first field
  size_t outer_end_ = 0;  // reader: end of the record around this one
};

}  // namespace rocegw::hand_over
