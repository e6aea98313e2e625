// SPDX-License-Identifier: Apache-2.0
// States that released versions wrote stay readable. states/OBJECT-N holds the number of the object
// and its state as version N of its records wrote it; files are added and never changed.
// ROCEGW_RECORD_STATES=n writes states/OBJECT-n anew from this program.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "gateway/hand_over/state_versions.h"
#include "tests/support/hand_over/handed_objects.h"

namespace rocegw::testing {
namespace {

using hand_over::StateKindInfo;

constexpr size_t kHead = 8;  // bytes of kind, version and length in front of a record

std::vector<uint8_t> Loaded(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  return {bytes.begin(), bytes.end()};
}

std::map<std::string, std::vector<uint8_t>> Recorded() {
  std::map<std::string, std::vector<uint8_t>> files;
  for (const auto& file : std::filesystem::directory_iterator(ROCEGW_RECORDED_STATES))
    files[file.path().filename()] = Loaded(file.path());
  return files;
}

// Returns true if the bytes have a record of that kind and version, with a length that fits.
bool Holds(const std::vector<uint8_t>& bytes, uint16_t kind, uint16_t version) {
  const auto number = [&](size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= uint64_t{bytes[at + i]} << 8 * i;
    return value;
  };
  for (size_t at = 1; at + kHead <= bytes.size(); ++at) {
    if (number(at, 2) == kind && number(at + 2, 2) == version &&
        number(at + 4, 4) <= bytes.size() - at - kHead) {
      return true;
    }
  }
  return false;
}

TEST(RecordedStates, OfEachVersion_AreRead) {
  if (const char* const version = std::getenv("ROCEGW_RECORD_STATES"); version != nullptr) {
    for (uint8_t i = 0; i < static_cast<uint8_t>(HandedObject::kCount); ++i) {
      const auto object = static_cast<HandedObject>(i);
      std::vector<uint8_t> state = ExampleOf(object);
      state.insert(state.begin(), i);
      std::ofstream out(std::filesystem::path(ROCEGW_RECORDED_STATES) /
                            (std::string(NameOf(object)) + "-" + version),
                        std::ios::binary);
      out.write(reinterpret_cast<const char*>(state.data()),
                static_cast<std::streamsize>(state.size()));
    }
  }
  const auto files = Recorded();
  ASSERT_FALSE(files.empty());
  for (const auto& [name, bytes] : files) {
    ASSERT_FALSE(bytes.empty()) << name;
    ASSERT_LT(bytes[0], static_cast<uint8_t>(HandedObject::kCount)) << name;
    EXPECT_EQ(ReadAndRun(static_cast<HandedObject>(bytes[0]), std::span(bytes).subspan(1)), "")
        << name;
  }
}

// A kind that gets another version needs a recorded state of it before it is released.
TEST(RecordedStates, OfEachKindAndVersion_AreThere) {
  const auto files = Recorded();
  for (const StateKindInfo& kind : hand_over::kStateKinds) {
    for (uint16_t version = kind.oldest; version <= kind.version; ++version) {
      bool found = false;
      for (const auto& [name, bytes] : files)
        found |= Holds(bytes, static_cast<uint16_t>(kind.kind), version);
      EXPECT_TRUE(found) << kind.name << " version " << version
                         << " has no recorded state: ROCEGW_RECORD_STATES=n writes states/*-n";
    }
  }
}

// An example with each byte damaged is refused, or works.
TEST(RecordedStates, WithADamagedByte_DoNoHarm) {
  for (const auto& [name, bytes] : Recorded()) {
    for (size_t at = 1; at < bytes.size(); at += 1 + bytes.size() / 400) {
      std::vector<uint8_t> damaged = bytes;
      damaged[at] ^= static_cast<uint8_t>(1 + at % 255);
      (void)ReadAndRun(static_cast<HandedObject>(bytes[0]), std::span(damaged).subspan(1));
    }
  }
}

}  // namespace
}  // namespace rocegw::testing
