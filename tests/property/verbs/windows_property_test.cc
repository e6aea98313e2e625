// SPDX-License-Identifier: Apache-2.0
// Regions and windows, compared with a model that keeps the owner of every byte: whatever is bound,
// moved, invalidated, registered and deregistered on two workers, a key reaches exactly the bytes
// it was given.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>

#include "gateway/verbs/mr_table.h"
#include "tests/support/random.h"

namespace rocegw::testing::windows_property {
namespace {

using verbs::MwType;

constexpr SessionId kSession{3};
constexpr uint64_t kBase = 0x10000;  // regions overlap within [kBase, kBase + 64)
constexpr uint32_t kAccess[] = {verbs::kAccessRemoteRead, verbs::kAccessRemoteWrite,
                                verbs::kAccessRemoteRead | verbs::kAccessRemoteWrite,
                                verbs::kAccessRemoteRead | verbs::kAccessZeroBased};

struct Region {
  verbs::RegionConfig config;
  std::unique_ptr<verbs::BoundWindows> bound = std::make_unique<verbs::BoundWindows>();
  int windows = 0;  // as the model counts them
};

struct Window {
  MwType type;
  std::unique_ptr<verbs::MemoryWindow> window;
  uint32_t pd;
  uint32_t key;
  std::optional<uint32_t> region;  // key, while it is bound
  uint64_t address = 0;
  uint64_t length = 0;
  uint32_t access = 0;
  uint32_t qpn = 0;
};

class WindowsProperty : public ::testing::Test {
 protected:
  // Queue pairs 0 to 3: two protection domains, two workers.
  static verbs::RemoteUser User(uint32_t qp) {
    return {kSession, 1 + qp % 2, Qpn{0x100 + qp}, {qp, 1}};
  }
  static uint32_t WorkerOf(uint32_t qp) { return qp / 2; }

  void AddRegion() {
    Region region;
    region.config.key = MemoryKey{next_region_ += 0x100};
    region.config.session = kSession;
    region.config.pd = 1 + static_cast<uint32_t>(random.Below(2));
    region.config.access = random.Below(4) != 0 ? uint32_t{verbs::kAccessLocalWrite} : 0;
    region.config.iova = kBase + random.Below(32);
    region.config.length = random.Between(1, 32);
    region.config.address = 0x70000000 + region.config.iova;
    region.config.windows = random.Below(8) != 0 ? region.bound.get() : nullptr;
    for (verbs::MrTable& table : tables) ASSERT_TRUE(table.Link(region.config));
    regions.emplace(region.config.key.value, std::move(region));
  }
  void AddWindow() {
    const uint32_t key = next_window_ += 0x100;
    const MwType type = random.Coin() ? MwType::kType1 : MwType::kType2;
    const auto pd = static_cast<uint32_t>(1 + random.Below(2));
    Window window{type, std::make_unique<verbs::MemoryWindow>(type, kSession, pd, MemoryKey{key}),
                  pd, key};
    for (verbs::MrTable& table : tables) ASSERT_TRUE(table.LinkWindow(key >> 8, *window.window));
    windows.emplace(key >> 8, std::move(window));
  }
  template <typename T>
  typename std::map<uint32_t, T>::iterator Pick(std::map<uint32_t, T>& from) {
    auto it = from.begin();
    std::advance(it, random.Below(from.size()));
    return it;
  }
  void LetGo(Window& window) {
    if (window.region.has_value()) --regions.at(*window.region).windows;
    window.region.reset();
  }
  void Bind();
  void Invalidate();
  void Deregister();
  void Look();

  Random random{TestSeed(20261122)};
  verbs::MrTable tables[2];
  std::map<uint32_t, Region> regions;  // by key
  std::map<uint32_t, Window> windows;  // by name
  uint32_t next_region_ = 0x40000000;
  uint32_t next_window_ = 0x80000000;
};

void WindowsProperty::Bind() {
  Window& window = Pick(windows)->second;
  const Region& region = Pick(regions)->second;
  const auto qp = static_cast<uint32_t>(random.Below(4));
  const bool none = random.Below(10) == 0;
  verbs::BindRequest wish{.before = MemoryKey{window.key},
                          .key = MemoryKey{static_cast<uint32_t>(random.Below(256))},
                          .region = region.config.key,
                          .access = kAccess[random.Below(std::size(kAccess))],
                          .address = kBase + random.Below(70),
                          .length = none ? 0 : random.Between(1, 12)};
  if (random.Below(10) == 0) wish.before.value ^= 1;
  const bool zero_based = (wish.access & verbs::kAccessZeroBased) != 0;
  const bool type1 = window.type == MwType::kType1;
  bool may = wish.before.value == window.key && User(qp).pd == window.pd;
  may = may && (type1 ? !zero_based : !none && !window.region.has_value());
  if (!none) {
    const verbs::RegionConfig& r = region.config;
    may = may && r.windows != nullptr && r.pd == window.pd && wish.address >= r.iova &&
          wish.address + wish.length <= r.iova + r.length;
    may = may && ((wish.access & verbs::kAccessRemoteWrite) == 0 || r.access != 0);
  }
  ASSERT_EQ(tables[WorkerOf(qp)].Bind(User(qp), wish), may);
  if (!may) return;
  LetGo(window);
  window.key = (window.key & ~0xFFu) | wish.key.value;
  window.address = wish.address;
  window.length = wish.length;
  window.access = wish.access;
  window.qpn = User(qp).qpn.value;
  if (none) return;
  window.region = region.config.key.value;
  ++regions.at(*window.region).windows;
}

void WindowsProperty::Invalidate() {
  Window& window = Pick(windows)->second;
  const auto qp = static_cast<uint32_t>(random.Below(4));
  const uint32_t key = window.key ^ (random.Below(8) == 0 ? 1 : 0);
  const bool may = window.type == MwType::kType2 && window.region.has_value() &&
                   key == window.key && window.qpn == User(qp).qpn.value;
  ASSERT_EQ(tables[WorkerOf(qp)].Invalidate(User(qp), MemoryKey{key}), may);
  if (may) LetGo(window);
}

void WindowsProperty::Deregister() {
  const auto region = Pick(regions);
  if (region->second.config.windows != nullptr) {
    const bool free = region->second.windows == 0;
    ASSERT_EQ(region->second.bound->Close(), free);
    if (!free) return;
  }
  for (verbs::MrTable& table : tables) ASSERT_TRUE(table.Unlink(region->second.config.key));
  regions.erase(region);
  AddRegion();
}

void WindowsProperty::Look() {
  const Window& window = Pick(windows)->second;
  const auto qp = static_cast<uint32_t>(random.Below(4));
  const uint32_t access = kAccess[random.Below(2)];
  const bool zero_based = (window.access & verbs::kAccessZeroBased) != 0;
  const uint64_t va = (zero_based ? 0 : kBase) + random.Below(70);
  const uint64_t length = random.Below(14);
  const uint64_t first = zero_based ? 0 : window.address;
  const bool may = window.region.has_value() && User(qp).pd == window.pd &&
                   (window.type == MwType::kType1 || User(qp).qpn.value == window.qpn) &&
                   (window.access & access) == access && va >= first &&
                   va + length <= first + window.length;
  const auto place =
      tables[WorkerOf(qp)].FindRemote(User(qp), MemoryKey{window.key}, access, va, length);
  ASSERT_EQ(place.has_value(), may);
  if (!may) return;
  ASSERT_EQ(place->address, 0x70000000 + window.address + (va - first));
}

TEST_F(WindowsProperty, KeysReachWhatTheyWereGiven) {
  for (int i = 0; i < 4; ++i) AddRegion();
  for (int i = 0; i < 5; ++i) AddWindow();
  int looks = 0;
  for (int step = 0; step < 200000; ++step) {
    switch (random.Below(10)) {
      case 0:
      case 1:
        Bind();
        break;
      case 2:
        Invalidate();
        break;
      case 3:
        if (random.Below(4) == 0) Deregister();
        break;
      default:
        Look();
        ++looks;
    }
    if (HasFatalFailure()) FAIL() << "step " << step;
  }
  EXPECT_GT(looks, 100000);
  for (auto& [name, window] : windows) window.window->Unbind();
  for (auto& [key, region] : regions) EXPECT_TRUE(region.bound->Close());
}

}  // namespace
}  // namespace rocegw::testing::windows_property
