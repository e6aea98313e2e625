// SPDX-License-Identifier: Apache-2.0
// Registered memory of every kind that a program may have, at either end of every kind of transfer;
// regions whose addresses start at zero; messages as long as they may be.
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/connection.h"
#include "tests/interop/rdma_check/device_memory.h"
#include "tests/interop/rdma_check/failure.h"
#include "tests/interop/rdma_check/foreign_memory.h"
#include "tests/interop/rdma_check/place.h"
#include "tests/interop/rdma_check/transfer.h"

namespace rocegw::interop {
namespace {

// Neither starts nor ends with a page or a packet. The arena's copy of each is at the same offset.
struct Part {
  uint32_t offset;
  uint32_t length;
  uint64_t seed;  // added to the case's
};
constexpr Part kRead = {1, 70'001, 0};  // as the memory was at the start
constexpr Part kWritten = {80'003, 60'000, 1};
constexpr Part kReceived = {150'000, 50'005, 2};
constexpr Part kSent = {210'001, 40'000, 0};

ibv_wc Transfer(Connection& c, ibv_wr_opcode opcode, ibv_sge local, const Place& remote) {
  ibv_send_wr wr{};
  wr.wr_id = 1;
  wr.sg_list = &local;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = remote.address;
  wr.wr.rdma.rkey = remote.key;
  PostSend(c.qp(0), &wr);
  return c.send().WaitOne("a request");
}

void ExpectDone(const ibv_wc& wc, const char* what) {
  Check(wc.status == IBV_WC_SUCCESS, what, " ended with ", ibv_wc_status_str(wc.status));
}

void Receive(Connection& c, ibv_sge into) {
  ibv_recv_wr wr{};
  wr.wr_id = 2;
  wr.sg_list = &into;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  CheckCode(ibv_post_recv(c.qp(0), &wr, &bad), "ibv_post_recv");
}

// The side with plain memory: reads, writes, sends, and takes a SEND.
void Visit(Session& session, Connection& c, bool writes) {
  Arena& arena = c.arena();
  const uint64_t seed = session.settings.seed;
  const Place theirs = Tell(session, {});
  const auto sge = [&](const Part& part) {
    return ibv_sge{arena.address(part.offset), part.length, c.mr()->lkey};
  };
  const auto at = [&](const Part& part) { return Place{theirs.address + part.offset, theirs.key}; };

  // The memory's pattern counts from its start, the arena's pieces from theirs.
  ExpectDone(Transfer(c, IBV_WR_RDMA_READ, sge(kRead), at(kRead)), "a READ");
  std::vector<uint8_t> whole(kForeignLength);
  FillPattern(seed, 0, whole.data(), whole.size());
  Check(std::memcmp(arena.at(kRead.offset), whole.data() + kRead.offset, kRead.length) == 0,
        "a READ brought other bytes");
  Receive(c, sge(kSent));
  session.control.Sync("receive posted");
  if (writes) {
    for (const Part& part : {kWritten, kReceived})
      arena.Fill({{part.offset, part.length}}, seed + part.seed);
    ExpectDone(Transfer(c, IBV_WR_RDMA_WRITE, sge(kWritten), at(kWritten)), "a WRITE");
    ExpectDone(Transfer(c, IBV_WR_SEND, sge(kReceived), {}), "a SEND into it");
  }
  ExpectDone(c.receive().WaitOne("a SEND from it"), "a SEND from it");
  Check(std::memcmp(arena.at(kSent.offset), whole.data() + kSent.offset, kSent.length) == 0,
        "a SEND from it brought other bytes");
  session.control.Sync("all there");
}

// What the memory must hold in the end.
std::vector<uint8_t> Wanted(uint64_t seed, bool writes) {
  std::vector<uint8_t> wanted(kForeignLength);
  FillPattern(seed, 0, wanted.data(), wanted.size());
  if (!writes) return wanted;
  for (const Part& part : {kWritten, kReceived})
    FillPattern(seed + part.seed, 0, wanted.data() + part.offset, part.length);
  return wanted;
}

// Messages that travel in the rings, and an atomic, after which the queue pair is of no use.
constexpr uint32_t kSmall = 40;

void VisitSmall(Session& session, Connection& c) {
  Arena& arena = c.arena();
  const Place theirs = Tell(session, {});
  Receive(c, {arena.address(0), kSmall, c.mr()->lkey});
  arena.Fill({{4096, kSmall}}, session.settings.seed + 3);
  session.control.Sync("small receives posted");
  ExpectDone(Transfer(c, IBV_WR_SEND, {arena.address(4096), kSmall, c.mr()->lkey}, {}),
             "a small SEND into it");
  ExpectDone(c.receive().WaitOne("a small SEND from it"), "a small SEND from it");
  Check(std::memcmp(arena.at(0), arena.at(4096), kSmall) == 0, "a small SEND brought other bytes");
  session.control.Sync("small ones done");
  ibv_sge result{arena.address(0), 8, c.mr()->lkey};
  ibv_send_wr wr{};
  wr.sg_list = &result;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.atomic.remote_addr = theirs.address;
  wr.wr.atomic.rkey = theirs.key;
  PostSend(c.qp(0), &wr);
  const ibv_wc wc = c.send().WaitOne("an atomic");
  Check(wc.status == IBV_WC_REM_ACCESS_ERR, "an atomic ended with ", ibv_wc_status_str(wc.status));
  session.control.Sync("atomic refused");
}

void OwnSmall(Session& session, Connection& c, ForeignMemory& memory, uint32_t key) {
  const auto base = reinterpret_cast<uint64_t>(memory.start);
  Receive(c, {base + 64, kSmall, key});
  Tell(session, {base, key});
  session.control.Sync("small receives posted");
  ExpectDone(c.receive().WaitOne("a small SEND into it"), "a small SEND into it");
  std::vector<uint8_t> wanted(kSmall);
  FillPattern(session.settings.seed + 3, 0, wanted.data(), wanted.size());
  std::vector<uint8_t> found(kSmall);
  memory.read_file(64, found.data(), found.size());
  Check(found == wanted, "a small SEND brought other bytes");
  ExpectDone(Transfer(c, IBV_WR_SEND, {base + 64, kSmall, key}, {}), "a small SEND from it");
  session.control.Sync("small ones done");
  session.control.Sync("atomic refused");  // the peer's, while the region is there
}

// The side whose memory it is. base: the address that it begins at for whoever uses the region.
void Own(Session& session, Connection& c, ForeignMemory& memory, int access, uint64_t base) {
  const bool writes = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
  const Owned<ibv_mr> mr(ibv_reg_mr(c.pd(), memory.start, memory.length, access));
  Check(mr != nullptr, "ibv_reg_mr: ", strerror(errno));
  const auto sge = [&](const Part& part) {
    return ibv_sge{base + part.offset, part.length, mr->lkey};
  };
  if (writes) Receive(c, sge(kReceived));
  Tell(session, {base, mr->rkey});
  session.control.Sync("receive posted");
  ExpectDone(Transfer(c, IBV_WR_SEND, sge(kSent), {}), "a SEND from it");
  if (writes) ExpectDone(c.receive().WaitOne("a SEND into it"), "a SEND into it");
  session.control.Sync("all there");
  const std::vector<uint8_t> wanted = Wanted(session.settings.seed, writes);
  if (!memory.on_device) {
    Check(std::memcmp(memory.start, wanted.data(), wanted.size()) == 0, "memory differs");
    return;
  }
  std::vector<uint8_t> found(wanted.size());
  memory.read_file(0, found.data(), found.size());
  Check(found == wanted, "memory of the device differs");
  OwnSmall(session, c, memory, sge({0, 8, 0}).lkey);
}

void OfKind(Session& session, MemoryKind kind, bool by_client) {
  Connection c(session, {});
  const bool writes = kind != MemoryKind::kReadOnlyFile;
  if (session.is_client == by_client) {
    Visit(session, c, writes);
  } else {
    const uint64_t seed = session.settings.seed;
    WithMemory(kind, seed, [&](ForeignMemory& memory) {
      Own(session, c, memory, writes ? kAllAccess : IBV_ACCESS_REMOTE_READ,
          reinterpret_cast<uint64_t>(memory.start));
      if (!memory.read_file) return;
      std::vector<uint8_t> file(memory.length);
      memory.read_file(0, file.data(), file.size());
      Check(file == Wanted(seed, writes && kind != MemoryKind::kPrivateFile), "the file differs");
    });
  }
  c.Close(session, by_client);
}

void OnDevice(Session& session, MemoryKind kind, bool by_client) {
  // Before verbs are used, as programs of GPUs do.
  if (session.is_client != by_client) LoadDeviceLibrary(kind);
  Connection c(session, {});
  if (session.is_client == by_client) {
    Visit(session, c, true);
    VisitSmall(session, c);
  } else {
    WithMemory(kind, session.settings.seed, [&](ForeignMemory& memory) {
      Own(session, c, memory, kAllAccess, reinterpret_cast<uint64_t>(memory.start));
    });
  }
}

// The allocation is freed while the peer writes to it: the peer's queue pair fails, another one of
// the same program goes on, and a new allocation works.
void FreedOnDevice(Session& session, bool by_client) {
  const bool owns = session.is_client != by_client;
  if (owns) LoadDeviceLibrary(MemoryKind::kDevice);
  Connection first(session, {});
  Connection other(session, {});
  const auto of_host = Place{other.arena().address(0), other.mr()->rkey};
  const auto sge = [](Connection& c) { return ibv_sge{c.arena().address(8192), 64, c.mr()->lkey}; };
  const auto write = [&](Connection& c, const Place& to) {
    return Transfer(c, IBV_WR_RDMA_WRITE, sge(c), to);
  };
  if (!owns) {
    const Place device = Tell(session, {});
    ExpectDone(write(first, device), "a WRITE");
    session.control.Sync("written");
    session.control.Sync("freed");
    const ibv_wc wc = write(first, device);
    Check(wc.status == IBV_WC_REM_ACCESS_ERR, "a WRITE to freed memory ended with ",
          ibv_wc_status_str(wc.status));
    ExpectDone(write(other, Tell(session, of_host)), "a WRITE to other memory of the program");
    ExpectDone(write(other, Tell(session, {})), "a WRITE to a new allocation");
    session.control.Sync("all there");
    return;
  }
  const auto registered = [](Connection& c, const ForeignMemory& memory) {
    Owned<ibv_mr> mr(ibv_reg_mr(c.pd(), memory.start, memory.length, kAllAccess));
    Check(mr != nullptr, "ibv_reg_mr: ", strerror(errno));
    return mr;
  };
  WithMemory(MemoryKind::kDevice, session.settings.seed, [&](ForeignMemory& memory) {
    const Owned<ibv_mr> mr = registered(first, memory);
    Tell(session, {reinterpret_cast<uint64_t>(memory.start), mr->rkey});
    session.control.Sync("written");
    memory.free();
    session.control.Sync("freed");
    Tell(session, of_host);
    WithMemory(MemoryKind::kDevice, session.settings.seed, [&](ForeignMemory& next) {
      const Owned<ibv_mr> again = registered(other, next);
      Tell(session, {reinterpret_cast<uint64_t>(next.start), again->rkey});
      session.control.Sync("all there");
    });
  });
}

void ZeroBased(Session& session, bool by_client) {
  Connection c(session, {});
  if (session.is_client == by_client) {
    Visit(session, c, true);
  } else {
    WithMemory(MemoryKind::kHeap, session.settings.seed, [&](ForeignMemory& memory) {
      Own(session, c, memory, kAllAccess | IBV_ACCESS_ZERO_BASED, 0);
    });
  }
  c.Close(session, by_client);
}

// The longest message that verbs have, and the packet numbers of half of all there are.
constexpr uint64_t kLongest = uint64_t{1} << 31;
constexpr uint64_t kStretch = 4096;

class LongMemory {
 public:
  explicit LongMemory(ibv_pd* pd) {
    start_ = mmap(nullptr, kLongest, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CheckErrno(start_ != MAP_FAILED, "mmap of 2 GiB");
    mr_.reset(ibv_reg_mr(pd, start_, kLongest, kAllAccess));
    Check(mr_ != nullptr, "ibv_reg_mr of 2 GiB: ", strerror(errno));
  }
  ~LongMemory() {
    mr_.reset();
    munmap(start_, kLongest);
  }
  LongMemory(const LongMemory&) = delete;
  LongMemory& operator=(const LongMemory&) = delete;

  // Patterns of other cases would take longer than the messages. Each stretch is a number of its
  // own, then one byte.
  void Fill(uint64_t seed) {
    auto* const all = static_cast<uint8_t*>(start_);
    for (uint64_t at = 0; at < kLongest; at += kStretch) {
      const uint64_t number = seed ^ at;
      std::memcpy(all + at, &number, sizeof number);
      std::memset(all + at + sizeof number, ByteOf(number), kStretch - sizeof number);
    }
  }
  void Verify(uint64_t seed, const char* what) const {
    const auto* const all = static_cast<const uint8_t*>(start_);
    for (uint64_t at = 0; at < kLongest; at += kStretch) {
      const uint64_t number = seed ^ at;
      const uint8_t* const rest = all + at + sizeof number;
      const bool good = std::memcmp(all + at, &number, sizeof number) == 0 &&
                        *rest == ByteOf(number) &&
                        std::memcmp(rest, rest + 1, kStretch - sizeof number - 1) == 0;
      Check(good, what, ": other bytes behind ", at);
    }
  }
  ibv_sge sge() const {
    return {reinterpret_cast<uint64_t>(start_), static_cast<uint32_t>(kLongest), mr_->lkey};
  }
  Place place() const { return {reinterpret_cast<uint64_t>(start_), mr_->rkey}; }

 private:
  static uint8_t ByteOf(uint64_t number) { return static_cast<uint8_t>(number / kStretch % 251); }

  void* start_;
  Owned<ibv_mr> mr_;
};

void Longest(Session& session, bool by_client) {
  Connection c(session, {});
  const uint64_t seed = session.settings.seed;
  LongMemory memory(c.pd());
  const bool requests = session.is_client == by_client;
  const Place theirs = Tell(session, memory.place());
  uint64_t round = seed;
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    ++round;
    const bool reads = opcode == IBV_WR_RDMA_READ;
    // READs fill the requester's memory.
    const bool source = requests != reads;
    if (source) memory.Fill(round);
    if (opcode == IBV_WR_SEND && !requests) Receive(c, memory.sge());
    session.control.Sync("ready");
    if (requests) ExpectDone(Transfer(c, opcode, memory.sge(), theirs), "2 GiB");
    if (opcode == IBV_WR_SEND && !requests) {
      const ibv_wc wc = c.receive().WaitOne("a SEND of 2 GiB");
      ExpectDone(wc, "a receive of 2 GiB");
      Check(wc.byte_len == kLongest, "a receive of 2 GiB says ", wc.byte_len);
    }
    session.control.Sync("done");
    if (!source) memory.Verify(round, reads ? "READ" : opcode == IBV_WR_SEND ? "SEND" : "WRITE");
  }
  c.Close(session, by_client);
}

constexpr std::array kEverywhere = {
    MemoryKind::kShared,       MemoryKind::kSharedFile, MemoryKind::kPrivateFile,
    MemoryKind::kReadOnlyFile, MemoryKind::kMemfd,      MemoryKind::kSystemV,
    MemoryKind::kData,         MemoryKind::kHeap,       MemoryKind::kStack};

}  // namespace

std::vector<Case> MemoryCases() {
  std::vector<Case> cases;
  for (const MemoryKind kind : kEverywhere) {
    cases.push_back({std::string("memory.") + Name(kind), true, Needs::kAnything,
                     [kind](Session& s, bool by_client) { OfKind(s, kind, by_client); }});
  }
  return cases;
}

std::vector<Case> LargeMemoryCases() {
  return {{"large.huge_pages", true, Needs::kAnything,
           [](Session& s, bool by_client) { OfKind(s, MemoryKind::kHugePages, by_client); }},
          {"large.device", true, Needs::kAnything,
           [](Session& s, bool by_client) { OnDevice(s, MemoryKind::kDevice, by_client); }},
          {"large.device_shared", true, Needs::kAnything,
           [](Session& s, bool by_client) { OnDevice(s, MemoryKind::kDeviceShared, by_client); }},
          {"large.device_hip", true, Needs::kAnything,
           [](Session& s, bool by_client) { OnDevice(s, MemoryKind::kDeviceHip, by_client); }},
          {"large.device_freed", true, Needs::kAnything, FreedOnDevice},
          {"large.zero_based", true, Needs::kAnything, ZeroBased},
          {"large.longest", true, Needs::kAnything, Longest}};
}

}  // namespace rocegw::interop
