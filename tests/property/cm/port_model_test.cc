// SPDX-License-Identifier: Apache-2.0
// Port table, compared with a linear list.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "gateway/cm/path/port_table.h"
#include "tests/support/random.h"
#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

struct Held {
  CmHandle id;
  PortSpace space;
  Endpoint address;
  bool reuse;
  bool af_only;
  bool listening;
};

bool Meet(const Held& a, const Held& b) {
  if (a.space != b.space || a.address.port != b.address.port) return false;
  const bool wild_a = a.address.IsWildcard(), wild_b = b.address.IsWildcard();
  if (!wild_a && !wild_b) return a.address.address == b.address.address;
  return !(a.af_only && b.af_only && a.address.address.IsV4() != b.address.address.IsV4());
}

TEST(PortTable, RandomUse_IsAsTheModelSays) {
  rocegw::testing::Random random(rocegw::testing::TestSeed(77));
  testing::SeededRandom ports_random(78);
  PortTable table(100, 107);
  std::vector<Held> model;
  wire::Gid six;
  six.bytes[0] = 0x20;
  const wire::Gid addresses[] = {wire::Gid::FromV4(0), {}, testing::V4(1), testing::V4(2), six};
  uint64_t next_id = 1;
  int bound = 0, refused = 0, found = 0;
  for (int round = 0; round < 20000; ++round) {
    const PortSpace space = random.Coin() ? PortSpace::kTcp : PortSpace::kUdp;
    switch (random.Below(4)) {
      case 0: {
        PortTable::Binding binding;
        binding.id = {next_id++};
        binding.address.address = addresses[random.Below(5)];
        binding.address.port = static_cast<uint16_t>(random.Below(4));
        binding.reuse = random.Coin();
        binding.af_only = random.Coin();
        const bool any_port = binding.address.port == 0;
        const int error = table.Bind(space, binding, ports_random);
        const Held wanted{binding.id,    space,           binding.address,
                          binding.reuse, binding.af_only, false};
        const bool clash = std::any_of(model.begin(), model.end(), [&](const Held& held) {
          return Meet(held, wanted) && !(held.reuse && wanted.reuse);
        });
        if (any_port && error == EADDRNOTAVAIL) {
          // The session's share is one of eight ports.
          EXPECT_TRUE(std::any_of(model.begin(), model.end(), [&](const Held& held) {
            return held.space == space && held.address.port >= 100;
          }));
          ++refused;
          break;
        }
        ASSERT_EQ(error, clash ? EADDRINUSE : 0) << round;
        if (error == 0) {
          if (any_port) {
            ASSERT_GE(binding.address.port, 100);
            ASSERT_LE(binding.address.port, 107);
          }
          model.push_back(wanted);
          ++bound;
        } else {
          ++refused;
        }
        break;
      }
      case 1: {
        if (model.empty()) break;
        Held& held = model[random.Below(model.size())];
        const bool clash = std::any_of(model.begin(), model.end(), [&](const Held& other) {
          return other.id != held.id && Meet(other, held);
        });
        ASSERT_EQ(table.Listen(held.space, held.address.port, held.id), clash ? EADDRINUSE : 0)
            << round;
        if (!clash) held.listening = true;
        break;
      }
      case 2: {
        if (model.empty() || (model.size() < 12 && random.Coin())) break;
        const size_t victim = random.Below(model.size());
        table.Unbind(model[victim].space, model[victim].address.port, model[victim].id);
        model.erase(model.begin() + static_cast<ptrdiff_t>(victim));
        break;
      }
      default: {
        const wire::Gid& destination = addresses[2 + random.Below(3)];
        const auto port =
            static_cast<uint16_t>(random.Below(2) == 0 ? random.Below(4) : 100 + random.Below(8));
        bool open = false;
        const CmHandle listener = table.FindListener(space, port, destination, 0, &open);
        const Held* best = nullptr;
        bool wanted_open = false;
        for (const Held& held : model) {
          if (held.space != space || held.address.port != port || !held.listening) continue;
          wanted_open = true;
          const bool wild = held.address.IsWildcard();
          if (wild ? held.af_only && held.address.address.IsV4() != destination.IsV4()
                   : held.address.address != destination) {
            continue;
          }
          if (best == nullptr || !wild) best = &held;
        }
        ASSERT_EQ(open, wanted_open);
        ASSERT_EQ(listener, best == nullptr ? CmHandle{} : best->id) << round;
        found += best != nullptr ? 1 : 0;
        break;
      }
    }
  }
  EXPECT_GT(bound, 500);
  EXPECT_GT(refused, 500);
  EXPECT_GT(found, 100);
  for (const Held& held : model) table.Unbind(held.space, held.address.port, held.id);
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace rocegw::cm
