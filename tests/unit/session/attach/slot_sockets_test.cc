// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/slot_sockets.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

namespace fs = std::filesystem;

class Slots : public ::testing::Test {
 protected:
  Slots() {
    char name[] = "/tmp/rocegw-slots-XXXXXX";
    folder = mkdtemp(name);
    session::Options options;
    options.slots_dir = folder + "/a";
    options.most_slots = 12;
    options.most_slots_of_tenant = 8;
    host.emplace(1, options);
    tenant::TenantSettings tenant;
    tenant.name = "tenants/red";
    host->server->SetTenant(tenant);
  }
  ~Slots() override {
    host.reset();
    fs::remove_all(folder);
  }
  tenant::PoolSettings Pool(uint32_t slots, const std::string& uid = "ABCDEF01-2345") {
    tenant::PoolSettings pool;
    pool.name = "tenants/red/pools/a";
    pool.uid = uid;
    pool.slots = slots;
    return pool;
  }
  std::string Path(const std::string& rest) const { return folder + "/a/" + rest; }
  static mode_t Mode(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  }
  // Connects as a program; invalid if there is no listener.
  static UniqueFd Connect(const std::string& path) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
    return fd;
  }

  std::string folder;
  std::optional<SessionHost> host;
};

TEST_F(Slots, PoolComes_OneSocketPerSlotWithItsRights) {
  session::SlotRights rights;
  rights.mode = 0666;
  rights.gid = 65534;
  host->server->SetPool(Pool(2), rights);
  for (const char* slot : {"0", "1"}) {
    const std::string place = Path(std::string("abcdef01/") + slot);
    EXPECT_EQ(Mode(place + "/attach.sock"), 0666u);
    EXPECT_EQ(Mode(place), 0751u);
    struct stat info {};
    ASSERT_EQ(stat(place.c_str(), &info), 0);
    EXPECT_EQ(info.st_gid, 65534u);
  }
  EXPECT_EQ(Mode(Path("abcdef01")), 0751u);
  EXPECT_EQ(Mode(Path("")), 0711u);
}

TEST_F(Slots, FoldersLetThoseThroughWhomTheSocketLetsIn) {
  const std::vector<std::pair<uint32_t, mode_t>> cases{
      {0600, 0700}, {0660, 0750}, {0666, 0751}, {0606, 0701}, {0640, 0700}};
  for (const auto& [socket_mode, folder_mode] : cases) {
    session::SlotRights rights;
    rights.mode = socket_mode;
    host->server->SetPool(Pool(1), rights);
    EXPECT_EQ(Mode(Path("abcdef01/0/attach.sock")), socket_mode);
    EXPECT_EQ(Mode(Path("abcdef01/0")), folder_mode) << std::oct << socket_mode;
    EXPECT_EQ(Mode(Path("abcdef01")), folder_mode) << std::oct << socket_mode;
  }
}

// A pod without any rights: no user of the host, no group, no capability.
TEST_F(Slots, ProgramOfAnotherUser_ConnectsWhereTheModeSaysSo) {
  fs::permissions(folder, fs::perms(0711));
  for (const uint32_t mode : {0660u, 0666u}) {
    session::SlotRights rights;
    rights.mode = mode;
    host->server->SetPool(Pool(1), rights);
    const std::string path = Path("abcdef01/0/attach.sock");
    const pid_t child = ::fork();
    if (child == 0) {
      const bool other =
          ::setgroups(0, nullptr) == 0 && ::setgid(65534) == 0 && ::setuid(65534) == 0;
      ::_exit(!other ? 2 : Connect(path).valid() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), mode == 0666 ? 0 : 1) << std::oct << mode;
  }
}

TEST_F(Slots, WhoComesThroughASlot_BelongsToItsPool) {
  host->server->SetPool(Pool(1), {});
  TestClient client(*host, Connect(Path("abcdef01/0/attach.sock")));
  host->Settle();
  ASSERT_TRUE(client.Hello());
  session::StateSnapshot seen;
  host->server->Snapshot({.sessions = true, .pools = true},
                         [&](session::StateSnapshot snapshot) { seen = std::move(snapshot); });
  host->Settle();
  ASSERT_EQ(seen.sessions.size(), 1u);
  EXPECT_EQ(seen.sessions[0].pool, "tenants/red/pools/a");
  EXPECT_EQ(seen.pools.back().sockets, std::vector<std::string>{Path("abcdef01/0/attach.sock")});
}

TEST_F(Slots, FewerSlots_TheLastGoAndComeAgain) {
  host->server->SetPool(Pool(3), {});
  host->server->SetPool(Pool(1), {});
  EXPECT_TRUE(Connect(Path("abcdef01/0/attach.sock")).valid());
  EXPECT_FALSE(fs::exists(Path("abcdef01/1")));
  host->server->SetPool(Pool(2), {});
  EXPECT_TRUE(Connect(Path("abcdef01/1/attach.sock")).valid());
}

TEST_F(Slots, OtherRights_AreSet) {
  host->server->SetPool(Pool(1), {});
  session::SlotRights rights;
  rights.mode = 0600;
  host->server->SetPool(Pool(1), rights);
  EXPECT_EQ(Mode(Path("abcdef01/0/attach.sock")), 0600u);
}

TEST_F(Slots, PoolRemoved_SocketsGoSessionsStay) {
  host->server->SetPool(Pool(1), {});
  TestClient client(*host, Connect(Path("abcdef01/0/attach.sock")));
  host->Settle();
  ASSERT_TRUE(client.Hello());
  client.OpenContext();
  host->server->RemovePool("tenants/red/pools/a");
  host->server->RemoveTenant("tenants/red");
  EXPECT_FALSE(fs::exists(Path("abcdef01")));
  client.OpenContext();
  EXPECT_EQ(client.error(), 0);
}

TEST_F(Slots, OtherUid_IsAnotherFolder) {
  host->server->SetPool(Pool(1), {});
  host->server->SetPool(Pool(1, "not a uuid"), {});
  EXPECT_FALSE(fs::exists(Path("abcdef01")));
  const std::string hashed = session::SlotFolder(Pool(1, "not a uuid"));
  EXPECT_EQ(hashed.size(), 8u);
  EXPECT_TRUE(fs::exists(Path(hashed + "/0/attach.sock")));
}

TEST_F(Slots, Leftovers_GoAndWhatIsInUseStays) {
  host->server->SetPool(Pool(1), {});
  fs::create_directories(Path("deadbeef/0"));
  fs::create_directories(Path("abcdef01/7"));
  host->server->RemoveLeftoverSlots();
  EXPECT_FALSE(fs::exists(Path("deadbeef")));
  EXPECT_FALSE(fs::exists(Path("abcdef01/7")));
  EXPECT_TRUE(Connect(Path("abcdef01/0/attach.sock")).valid());
}

TEST_F(Slots, SamePlaceForTwoPools_IsSeenBeforehand) {
  host->server->SetPool(Pool(1), {});
  tenant::PoolSettings other = Pool(1, "abcdef01-9999");
  other.name = "tenants/red/pools/b";
  EXPECT_EQ(host->server->slots().Clash(other), "tenants/red/pools/a");
  EXPECT_EQ(host->server->slots().Clash(Pool(2)), "");
}

TEST_F(Slots, SocketThatCannotBe_IsAnEvent) {
  fs::create_directories(Path("abcdef01/0/attach.sock"));
  host->server->SetPool(Pool(2), {});
  const auto events = host->server->services().events.Rows();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].reason, "SOCKET_FAILED");
  EXPECT_NE(events[0].text.find("slot 0"), std::string::npos);
  EXPECT_TRUE(Connect(Path("abcdef01/1/attach.sock")).valid());
}

TEST_F(Slots, OfOneTenant_AreLimited_AndLeaveTheOthersSome) {
  const auto pool = [this](const std::string& name, const std::string& uid, uint32_t slots) {
    tenant::PoolSettings settings = Pool(slots, uid);
    settings.name = name;
    return settings;
  };
  EXPECT_TRUE(host->server->MakeSlots(Pool(6), {}).ok());
  const Status more = host->server->MakeSlots(pool("tenants/red/pools/b", "00000002", 3), {});
  EXPECT_EQ(more.error(), ENOBUFS);
  EXPECT_NE(more.text().find("tenants/red has 8 slots"), std::string::npos) << more.text();
  EXPECT_FALSE(fs::exists(Path("00000002/0"))) << "all or none";
  EXPECT_TRUE(host->server->MakeSlots(pool("tenants/blue/pools/a", "00000003", 6), {}).ok());
  EXPECT_EQ(host->server->MakeSlots(pool("tenants/green/pools/a", "00000004", 1), {}).error(),
            ENOBUFS);
}

TEST_F(Slots, Make_AllSocketsOrNoneOfThem) {
  fs::create_directories(Path("abcdef01/1/attach.sock"));
  const Status made = host->server->MakeSlots(Pool(3), {});
  EXPECT_EQ(made.error(), EEXIST);
  EXPECT_NE(made.text().find("slot 1"), std::string::npos) << made.text();
  EXPECT_FALSE(fs::exists(Path("abcdef01/0"))) << "the first one went again";
  fs::remove_all(Path("abcdef01"));
  EXPECT_TRUE(host->server->MakeSlots(Pool(3), {}).ok());
  EXPECT_TRUE(Connect(Path("abcdef01/2/attach.sock")).valid());
  host->server->DropSlots(Pool(3).name);
  EXPECT_FALSE(fs::exists(Path("abcdef01")));
}

TEST_F(Slots, Make_ThatFails_LeavesThePoolItsOldSockets) {
  host->server->SetPool(Pool(1), {});
  fs::create_directories(Path("abcdef01/2/attach.sock"));
  EXPECT_FALSE(host->server->MakeSlots(Pool(3), {}).ok());
  EXPECT_TRUE(Connect(Path("abcdef01/0/attach.sock")).valid());
  EXPECT_FALSE(fs::exists(Path("abcdef01/1")));
  session::SlotRights rights;
  rights.mode = 0600;
  EXPECT_FALSE(host->server->MakeSlots(Pool(3), rights).ok());
  EXPECT_TRUE(Connect(Path("abcdef01/0/attach.sock")).valid());
  EXPECT_EQ(Mode(Path("abcdef01/0/attach.sock")), 0660u);
  fs::remove_all(Path("abcdef01/2"));
  EXPECT_TRUE(host->server->MakeSlots(Pool(3), rights).ok());
  EXPECT_EQ(Mode(Path("abcdef01/2/attach.sock")), 0600u);
  EXPECT_EQ(Mode(Path("abcdef01/0/attach.sock")), 0600u);
}

TEST_F(Slots, Make_TakesNothingAway) {
  host->server->SetPool(Pool(3), {});
  EXPECT_TRUE(host->server->MakeSlots(Pool(1), {}).ok());
  EXPECT_TRUE(Connect(Path("abcdef01/2/attach.sock")).valid());
  host->server->SetPool(Pool(1), {});
  EXPECT_FALSE(fs::exists(Path("abcdef01/2")));
}

TEST_F(Slots, DefaultPoolRemovedFromTheConfiguration_IsAsWithoutOne) {
  tenant::PoolSettings pool;
  pool.name = session::kDefaultPool;
  pool.quota.peak[tenant::Resource::kPds] = 0;
  pool.slots = 0;
  host->server->SetPool(pool, {});
  TestClient client(*host);
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  EXPECT_EQ(client.AllocPd(context), 0u);
  host->server->RemovePool(session::kDefaultPool);
  host->server->RemoveTenant("tenants/default");
  EXPECT_NE(client.AllocPd(context), 0u);
}

}  // namespace
}  // namespace rocegw::testing
