// SPDX-License-Identifier: Apache-2.0
// Regions of dma-bufs. The machines that build have none, so the inspection is replaced by one that
// takes a memfd for a buffer of udmabuf; the tests of gateway/memory use real ones where there are.
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <thread>

#include "gateway/base/descriptor_message.h"
#include "tests/unit/session/objects/objects_fixture.h"

namespace rocegw::testing {
namespace {

constexpr uint64_t kAddress = 0x7F0000000000;
constexpr uint64_t kLength = 4 * 4096;
constexpr uint32_t kAll = 7;

StatusOr<memory::DmaBuf> TakeForUdmabuf(int fd) {
  const off_t length = ::lseek(fd, 0, SEEK_END);
  if (length <= 0) return Status(EINVAL, "no memory");
  return memory::DmaBuf{"udmabuf", static_cast<uint64_t>(length)};
}

// Takes any descriptor for a dma-buf.
class TakesAny final : public session::DescriptorReceiver {
 public:
  session::PassedDescriptor Take(int socket, const session::WantedDescriptor& wanted,
                                 std::vector<UniqueFd>& left) override {
    if (wanted.kind != session::PassedKind::kDmaBuf) return others_.Take(socket, wanted, left);
    std::array<uint8_t, 1> byte{};
    DescriptorMessage message = ReceiveDescriptors(socket, byte, MSG_DONTWAIT);
    session::PassedDescriptor passed;
    passed.received = true;
    passed.fd = std::move(message.fds.front());
    return passed;
  }
  void Finish(std::vector<UniqueFd>& left) override { left.clear(); }
  bool Discard(int socket) override { return others_.Discard(socket); }
  void Keep(int) override {}
  void Release(int) override {}

 private:
  session::ReceiverHere others_;
};

session::Options TakesMemfds() {
  session::Options options;
  options.inspect_dma_buf = TakeForUdmabuf;
  return options;
}

class DmaBufRegions : public ::testing::Test {
 protected:
  explicit DmaBufRegions(
      const session::Options& options = TakesMemfds(),
      std::shared_ptr<session::DescriptorReceiver> receiver = std::make_shared<TakesAny>())
      : host(2, options), client(Receiving(host, std::move(receiver))) {}
  static SessionHost& Receiving(SessionHost& host,
                                std::shared_ptr<session::DescriptorReceiver> receiver) {
    host.server->services().descriptors = std::move(receiver);
    return host;
  }
  void SetUp() override {
    ASSERT_TRUE(client.Hello());
    pd = client.AllocPd(client.OpenContext());
    ASSERT_EQ(::ftruncate(buffer.get(), kLength), 0);
    client.AnswersTakeTime();  // another thread inspects descriptors
  }
  void TearDown() override { EXPECT_EQ(host.BrokenRules(), std::vector<std::string>()); }

  uint32_t Import(uint64_t length = kLength, uint64_t address = kAddress, int fd = -2) {
    auto import = TestClient::Request<rocegw_import_region>(ROCEGW_MSG_IMPORT_REGION);
    import.address = address;
    import.length = length;
    return client.Call<rocegw_object_reply>(import, fd == -2 ? buffer.get() : fd).handle;
  }
  rocegw_mr_reply Register(uint32_t region, uint64_t offset, uint64_t length) {
    auto reg = TestClient::Request<rocegw_reg_mr>(ROCEGW_MSG_REG_MR);
    reg.pd = pd;
    reg.access = kAll;
    reg.address = kAddress + offset;
    reg.iova = offset;
    reg.length = length;
    reg.region = region;
    reg.region_offset = offset;
    return client.Call<rocegw_mr_reply>(reg);
  }
  uint64_t Used(session::Resource what) {
    return host.server->services().pools.gateway().used(what);
  }
  std::vector<session::MrRow> Rows() {
    std::vector<session::MrRow> rows;
    host.server->Snapshot({.mrs = true},
                          [&](session::StateSnapshot snapshot) { rows = std::move(snapshot.mrs); });
    host.Settle();
    return rows;
  }

  SessionHost host;
  TestClient client;
  uint32_t pd = 0;
  UniqueFd buffer{::memfd_create("buffer", MFD_CLOEXEC)};
};

TEST_F(DmaBufRegions, Registration_ReachesTheBuffersBytes_AndOnlyThoseOfIt) {
  const uint32_t region = Import();
  ASSERT_EQ(client.error(), 0);
  const auto mr = Register(region, 4096 + 8, 5000);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(mr.way, static_cast<uint32_t>(ROCEGW_MEMORY_DMA_BUF));
  ASSERT_EQ(::pwrite(buffer.get(), "hello", 5, 4096 + 8), 5);
  for (size_t w = 0; w < 2; ++w) {
    const verbs::RegionConfig& config = host.workers[w]->sessions.begin()->second.mrs[mr.rkey];
    EXPECT_EQ(config.direct_length, 5000u) << "no byte is reached by a cross-process copy";
    EXPECT_EQ(std::memcmp(config.DirectAt(0, 5), "hello", 5), 0);
  }
  Register(region, kLength - 100, 101);
  EXPECT_EQ(client.error(), EINVAL) << "beyond the buffer";
  const auto rows = Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].way, ROCEGW_MEMORY_DMA_BUF);
  EXPECT_EQ(rows[0].reason, "exported by udmabuf");
}

TEST_F(DmaBufRegions, RegistrationsAreCharged_TheBufferIsNot) {
  const uint64_t heap = Used(session::Resource::kHeapBytes);
  const uint64_t descriptors = Used(session::Resource::kDescriptors);
  const uint32_t region = Import();
  EXPECT_EQ(Used(session::Resource::kRegisteredBytes), 0u);
  EXPECT_GE(Used(session::Resource::kHeapBytes) - heap, kLength / 512);
  EXPECT_GT(Used(session::Resource::kDescriptors), descriptors);
  const auto first = Register(region, 0, kLength);
  const auto second = Register(region, 0, 100);
  EXPECT_EQ(Used(session::Resource::kRegisteredBytes), kLength + 100);
  EXPECT_EQ(Used(session::Resource::kRemappedBytes), 0u);
  client.Object(ROCEGW_MSG_DESTROY_REGION, region);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DEREG_MR, first.handle);
  client.Object(ROCEGW_MSG_DEREG_MR, second.handle);
  client.Object(ROCEGW_MSG_DESTROY_REGION, region);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(Used(session::Resource::kRegisteredBytes), 0u);
  EXPECT_EQ(Used(session::Resource::kHeapBytes), heap);
  EXPECT_EQ(Used(session::Resource::kDescriptors), descriptors);
}

TEST_F(DmaBufRegions, ImpossibleOnes_AreRefused_AndNothingStaysCharged) {
  const uint64_t heap = Used(session::Resource::kHeapBytes);
  Import(kLength + 4096);
  EXPECT_EQ(client.error(), EINVAL) << "beyond its end";
  Import(100);
  EXPECT_EQ(client.error(), EINVAL) << "no whole pages";
  Import(kLength, kAddress + 1);
  EXPECT_EQ(client.error(), EINVAL);
  Import(kLength, kAddress, -1);
  EXPECT_EQ(client.error(), EBADF) << "no descriptor";
  Import(UINT64_MAX & ~uint64_t{4095});
  EXPECT_EQ(client.error(), ENOMEM) << "page tables beyond all limits";
  EXPECT_EQ(Used(session::Resource::kHeapBytes), heap);
}

TEST_F(DmaBufRegions, EndOfTheProgram_ReleasesThem) {
  Register(Import(), 0, kLength);
  ASSERT_EQ(client.error(), 0);
  client.Disconnect();
  host.Settle();
  EXPECT_EQ(Used(session::Resource::kHeapBytes), 0u);
  EXPECT_EQ(Used(session::Resource::kDescriptors), 0u);
  EXPECT_EQ(Used(session::Resource::kRegisteredBytes), 0u);
}

// Descriptors of files that a hostile program serves block their inspection for ever.
std::promise<void>* g_release = nullptr;

StatusOr<memory::DmaBuf> Block(int) {
  g_release->get_future().wait();
  return Status(EINVAL, "no dma-buf");
}

class BlockedInspection : public DmaBufRegions {
 protected:
  BlockedInspection() : DmaBufRegions(Options()) {}
  static session::Options Options() {
    session::Options options;
    options.inspect_dma_buf = Block;
    return options;
  }
};

TEST_F(BlockedInspection, OtherProgramsAreServed_AndTheSessionCanEnd) {
  std::promise<void> release;
  g_release = &release;
  host.blocked_calls = 8;  // the inspection, and what follows it in the session's call queue
  auto import = TestClient::Request<rocegw_import_region>(ROCEGW_MSG_IMPORT_REGION);
  import.address = kAddress;
  import.length = kLength;
  ASSERT_TRUE(client.Send(import, buffer.get()));
  host.Settle();
  {
    TestClient other(host);
    ASSERT_TRUE(other.Hello());
    EXPECT_NE(other.OpenContext(), 0u);
  }
  client.Disconnect();
  host.Settle();
  EXPECT_EQ(Used(session::Resource::kPds), 0u) << "the session ended";
  release.set_value();
  host.blocked_calls = 0;
  while (session::ClientCallQueue::HeldByAll() != 0) std::this_thread::yield();
}

class RealInspection : public DmaBufRegions {
 protected:
  RealInspection() : DmaBufRegions(session::Options(), std::make_shared<session::ReceiverHere>()) {}
};

TEST_F(RealInspection, AMemfdIsNoDmaBuf) {
  Import();
  EXPECT_EQ(client.error(), EINVAL) << "it could be cut while the gateway copies";
}

}  // namespace
}  // namespace rocegw::testing
