// SPDX-License-Identifier: Apache-2.0
#include "gateway/hand_over/state_stream.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace rocegw::hand_over {
namespace {

constexpr TimePoint kNow{1'000'000'000};

enum class Colour : uint8_t { kRed, kGreen, kLast };

class StateStreamTest : public ::testing::Test {
 protected:
  template <typename F>
  void Write(F fields, TimePoint now = kNow) {
    StateStream out(bytes_, now, versions_);
    fields(out);
    ASSERT_TRUE(out.ok()) << out.failure();
  }
  // Returns the reason why the state was refused; "" if it was read to its end.
  template <typename F>
  std::string Read(F fields, TimePoint now = kNow) {
    StateStream in(bytes_, now);
    fields(in);
    if (!in.ok()) return in.failure();
    return in.at_end() ? "" : "not at the end";
  }

  const StateVersions versions_;
  std::vector<uint8_t> bytes_;
};

TEST_F(StateStreamTest, Numbers_AreLittleEndianWithFixedSizes) {
  Write([](StateStream& state) {
    uint8_t a = 1;
    uint16_t b = 0x0203;
    int32_t c = -2;
    uint64_t d = 0x0405060708090A0B;
    bool e = true;
    state(a, b, c, d, e);
  });
  const std::vector<uint8_t> expected = {1,    3, 2, 0xFE, 0xFF, 0xFF, 0xFF, 0x0B,
                                         0x0A, 9, 8, 7,    6,    5,    4,    1};
  EXPECT_EQ(bytes_, expected);
}

TEST_F(StateStreamTest, Values_ComeBack) {
  const auto fields = [](StateStream& state) {
    int64_t a = std::numeric_limits<int64_t>::min();
    float b = -1.5F;
    double c = 1e300;
    Psn d(0xFFFFFF);
    Qpn e{77};
    SlotHandle f{5, 6};
    Duration g = Microseconds(7);
    MemoryKey h{0xFFFFFFFF};
    SessionId i{9};
    state(a, b, c, d, e, f, g, h, i);
    EXPECT_EQ(a, std::numeric_limits<int64_t>::min());
    EXPECT_EQ(b, -1.5F);
    EXPECT_EQ(c, 1e300);
    EXPECT_EQ(d, Psn(0xFFFFFF));
    EXPECT_EQ(e, Qpn{77});
    EXPECT_EQ(f, (SlotHandle{5, 6}));
    EXPECT_EQ(g, Microseconds(7));
    EXPECT_EQ(h, MemoryKey{0xFFFFFFFF});
    EXPECT_EQ(i, SessionId{9});
  };
  Write(fields);
  EXPECT_EQ(Read(fields), "");
}

TEST_F(StateStreamTest, Times_KeepTheirDistanceFromNow) {
  Write([](StateStream& state) {
    TimePoint later = kNow + Seconds(3), earlier = kNow - Milliseconds(2), never = kNever, unset;
    auto low = static_cast<uint32_t>(kNow.ns - 40);
    state(later, earlier, never, unset);
    state.LowTime(low);
  });
  const TimePoint then = kNow + Seconds(100);
  EXPECT_EQ(Read(
                [&](StateStream& state) {
                  TimePoint later, earlier, never, unset{5};
                  uint32_t low = 0;
                  state(later, earlier, never, unset);
                  state.LowTime(low);
                  EXPECT_EQ(later, then + Seconds(3));
                  EXPECT_EQ(earlier, then - Milliseconds(2));
                  EXPECT_EQ(never, kNever);
                  EXPECT_EQ(unset, TimePoint{});
                  EXPECT_EQ(low, static_cast<uint32_t>(then.ns - 40));
                },
                then),
            "");
}

TEST_F(StateStreamTest, TimesBeyondTheRange_StayFarAway) {
  const auto fields = [](StateStream& state) {
    TimePoint past{std::numeric_limits<int64_t>::min()};
    state(past);
    EXPECT_LT(past.ns, std::numeric_limits<int64_t>::min() / 5);
  };
  Write(fields);
  EXPECT_EQ(Read(fields), "");
}

TEST_F(StateStreamTest, Records_AreReadInVersionAndKind) {
  const auto fields = [](StateStream& state) {
    const StateRecord outer(state, StateKind::kFlow);
    EXPECT_EQ(outer.version(), 1);
    const StateRecord inner(state, StateKind::kCongestion);
    uint32_t number = 7;
    state(number);
    EXPECT_EQ(number, 7u);
  };
  Write(fields);
  EXPECT_EQ(bytes_.size(), 8u + 8 + 4);
  EXPECT_EQ(Read(fields), "");
}

TEST_F(StateStreamTest, RecordOfAnotherKind_IsRefused) {
  Write([](StateStream& state) { const StateRecord record(state, StateKind::kFlow); });
  EXPECT_EQ(Read([](StateStream& state) { const StateRecord record(state, StateKind::kVersions); }),
            "record of another kind");
}

TEST_F(StateStreamTest, RecordOfANewerVersion_IsRefused) {
  Write([](StateStream& state) { const StateRecord record(state, StateKind::kFlow); });
  bytes_[2] = 200;
  EXPECT_EQ(Read([](StateStream& state) { const StateRecord record(state, StateKind::kFlow); }),
            "record of a newer version");
  bytes_[2] = 0;
  EXPECT_EQ(Read([](StateStream& state) { const StateRecord record(state, StateKind::kFlow); }),
            "record of a version that is too old");
}

TEST_F(StateStreamTest, RecordThatIsLongerThanItsFields_IsRefused) {
  Write([](StateStream& state) {
    const StateRecord record(state, StateKind::kFlow);
    uint32_t number = 7;
    state(number);
  });
  EXPECT_EQ(Read([](StateStream& state) {
              const StateRecord record(state, StateKind::kFlow);
              uint16_t number = 0;
              state(number);
            }),
            "record is longer than its fields");
}

TEST_F(StateStreamTest, FieldBeyondItsRecord_IsRefused) {
  Write([](StateStream& state) {
    {
      const StateRecord record(state, StateKind::kFlow);
      uint16_t number = 7;
      state(number);
    }
    uint64_t behind = 1;
    state(behind);
  });
  uint32_t number = 1;
  EXPECT_EQ(Read([&](StateStream& state) {
              const StateRecord record(state, StateKind::kFlow);
              state(number);
            }),
            "record is shorter than its fields");
  EXPECT_EQ(number, 0u);
}

TEST_F(StateStreamTest, EveryTruncation_IsRefused) {
  const auto fields = [](StateStream& state) {
    const StateRecord outer(state, StateKind::kFlow);
    GrowingRing<uint16_t> ring;
    ring.push_back(1);
    ring.push_back(2);
    state.Ring(ring, 2, [&](uint16_t& number) { state(number); });
    const StateRecord inner(state, StateKind::kCongestion);
    uint32_t number = 7;
    state(number);
  };
  Write(fields);
  const std::vector<uint8_t> whole = bytes_;
  ASSERT_EQ(Read(fields), "");
  for (size_t length = 0; length < whole.size(); ++length) {
    bytes_.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_NE(Read(fields), "") << length;
  }
}

TEST_F(StateStreamTest, CountsBeyondTheirLimit_AreRefused) {
  Write([](StateStream& state) {
    std::vector<uint16_t> numbers(5);
    state.Vector(numbers, 5, [&](uint16_t& number) { state(number); });
  });
  std::vector<uint16_t> numbers;
  const auto read = [&](uint32_t most) {
    return Read([&](StateStream& state) {
      state.Vector(numbers, most, [&](uint16_t& number) { state(number); });
    });
  };
  EXPECT_EQ(read(5), "");
  EXPECT_EQ(numbers.size(), 5u);
  EXPECT_EQ(read(4), "value out of range");
  EXPECT_TRUE(numbers.empty());
  // A count within the limit, but with fewer bytes behind it.
  bytes_.resize(4 + 3);
  EXPECT_EQ(read(5), "more elements than bytes");
}

TEST_F(StateStreamTest, WriterWithTooManyElements_Fails) {
  StateStream out(bytes_, kNow, versions_);
  std::vector<uint16_t> numbers(5);
  out.Vector(numbers, 4, [&](uint16_t& number) { out(number); });
  EXPECT_STREQ(out.failure(), "more elements than a reader takes");
}

TEST_F(StateStreamTest, ValuesOutOfRange_AreRefused) {
  bytes_ = {2};
  EXPECT_EQ(Read([](StateStream& state) { EXPECT_FALSE(state.Carry(false)); }),
            "value out of range");
  Colour colour = Colour::kGreen;
  bytes_ = {3};
  EXPECT_EQ(Read([&](StateStream& state) { state.Enum(colour, Colour::kLast); }),
            "value out of range");
  EXPECT_EQ(colour, Colour::kRed);
  bytes_ = {0, 0, 0, 1};
  EXPECT_EQ(Read([](StateStream& state) {
              Psn psn;
              state(psn);
            }),
            "value out of range");
  bytes_ = {0, 0, 0xC0, 0x7F};
  EXPECT_EQ(Read([](StateStream& state) {
              float number = 1;
              state(number);
              EXPECT_EQ(number, 0);
            }),
            "number is not finite");
}

TEST_F(StateStreamTest, FirstFailure_IsKept) {
  EXPECT_EQ(Read([](StateStream& state) {
              state.Require(false, "first");
              state.Require(false, "second");
            }),
            "first");
}

}  // namespace
}  // namespace rocegw::hand_over
