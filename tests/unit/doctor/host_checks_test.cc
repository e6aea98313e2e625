// SPDX-License-Identifier: Apache-2.0
#include "gateway/doctor/host_checks.h"

#include <gtest/gtest.h>

#include "tests/unit/doctor/good_facts.h"

namespace rocegw::doctor {
namespace {

using gateway::v1::FAIL;
using gateway::v1::OK;
using gateway::v1::WARN;

class HostChecks : public ::testing::Test {
 protected:
  Facts facts = GoodFacts();
};

TEST_F(HostChecks, OpenFiles_LimitBelowWhatProgramsMayNeed_Warns_NearlyUsedUp_Fails) {
  Expect(CheckOpenFiles(facts), OK, "40 open, at most 1048576");
  facts.host.open_files_limit = UINT64_MAX;
  Expect(CheckOpenFiles(facts), OK, "unlimited");
  // 1024 for the daemon, 32 for each of 256 programs.
  facts.host.open_files_limit = 9216;
  Expect(CheckOpenFiles(facts), OK, "9216");
  facts.host.open_files_limit = 9215;
  Expect(CheckOpenFiles(facts), WARN, "40 open, at most 9215");
  facts.host.open_files = 8289;
  Expect(CheckOpenFiles(facts), FAIL, "8289 open");
}

TEST_F(HostChecks, OpenFiles_ProgramsWithoutBound_NeedABoundedNumber) {
  facts.gateway.sessions = UINT64_MAX;
  facts.host.open_files_limit = 65536;
  Expect(CheckOpenFiles(facts), OK, "65536");
  facts.host.open_files_limit = 65535;
  Expect(CheckOpenFiles(facts), WARN, "65535");
}

TEST_F(HostChecks, MemoryLimit_BelowWhatProgramsMayCause_Warns) {
  facts.gateway.chargeable_memory = 7ull << 30;
  Expect(CheckMemoryLimit(facts), OK, "no control group");
  facts.host.memory_limit = (7ull << 30) + (512 << 20);
  Expect(CheckMemoryLimit(facts), OK, "at most 7680 MiB; programs may cause 7168 MiB");
  --facts.host.memory_limit;
  Expect(CheckMemoryLimit(facts), WARN, "programs may cause 7168 MiB");
  facts.host.memory_limit = 1;
  Expect(CheckMemoryLimit(facts), WARN, "at most 0 MiB");
  facts.gateway.chargeable_memory = UINT64_MAX;
  Expect(CheckMemoryLimit(facts), WARN, "any amount");
}

TEST_F(HostChecks, LockedMemory_MattersOnlyWherePortsMayLockIt) {
  facts.host.locked_memory_limit = 0;
  Expect(CheckLockedMemory(facts), OK, "no port");
  facts.gateway.locked_memory = 256 << 20;
  Expect(CheckLockedMemory(facts), WARN, "at most 0 MiB, the ports may lock 256 MiB");
  facts.host.locked_memory_limit = 256 << 20;
  Expect(CheckLockedMemory(facts), OK, "256 MiB");
  facts.host.locked_memory_limit = UINT64_MAX;
  Expect(CheckLockedMemory(facts), OK, "unlimited");
}

TEST_F(HostChecks, TrustedPool_BesideOthers_Warns) {
  Expect(CheckTrustedPools(facts), OK, "it is the only pool");
  facts.gateway.pools.push_back("tenants/red/pools/a");
  Expect(CheckTrustedPools(facts), WARN, "tenants/default/pools/default is trusted, beside 1");
  facts.gateway.trusted_pools.push_back("tenants/red/pools/a");
  Expect(CheckTrustedPools(facts), WARN, "and 1 other pools are trusted");
  facts.gateway.trusted_pools.clear();
  Expect(CheckTrustedPools(facts), OK, "none");
}

TEST_F(HostChecks, HugePages_MissOnlyWhereDpdkWouldTakeThem) {
  Expect(CheckHugePages(facts), OK, "no port");
  facts.gateway.huge_pages = true;
  Expect(CheckHugePages(facts), WARN, "none are reserved");
  facts.host.huge_pages = 256;
  facts.host.free_huge_page_bytes = 100 << 20;
  Expect(CheckHugePages(facts), OK, "256 reserved, 100 MiB free");
}

TEST_F(HostChecks, Processors_MoreWorkersThanProcessors_Warns) {
  facts.host.processors = 2;
  Expect(CheckProcessors(facts), OK, "2 workers, 2 processors");
  facts.host.processors = 1;
  Expect(CheckProcessors(facts), WARN, "2 workers, 1 processors");
}

TEST_F(HostChecks, Workers_WhoHasNotAnsweredForASecond_Fails) {
  Expect(CheckWorkers(facts), OK, "all of them answer");
  facts.gateway.workers[1] = Milliseconds(999);
  Expect(CheckWorkers(facts), OK, "all of them answer");
  facts.gateway.workers[1] = Milliseconds(12'900);
  Expect(CheckWorkers(facts), FAIL, "worker 1 has not answered for 12 s", "restart rocegwd");
}

TEST_F(HostChecks, Workers_SayWhatTheyGiveToACopyEngine) {
  facts.gateway.copy_engine = true;
  Expect(CheckWorkers(facts), OK, "all of them answer; none uses a copy engine");
  facts.gateway.engine_minimums = {2048, 0, 4096};
  Expect(CheckWorkers(facts), OK,
         "by copy engine copy worker 0 from 2048 bytes on, worker 2 from 4096 bytes on");
}

TEST_F(HostChecks, Egress_OpenToOtherUsers_WarnsWithTheRemedy) {
  facts.host.egress = EgressGuard::kGuarded;
  Expect(CheckEgress(facts), OK, "cannot send");
  facts.host.egress = EgressGuard::kNotTried;
  Expect(CheckEgress(facts), OK, "not tried");
  facts.host.egress = EgressGuard::kOpen;
  facts.host.uid = 993;
  Expect(CheckEgress(facts), WARN, "every program");
  EXPECT_NE(CheckEgress(facts).remedy().find("gateway=993"), std::string::npos);
}

TEST_F(HostChecks, Clock_NotSynchronisedOrNotKnown_Warns) {
  Expect(CheckClock(facts), OK, "synchronised, at most 2 ms off");
  facts.host.clock.synchronised = false;
  Expect(CheckClock(facts), WARN, "not synchronised");
  facts.host.clock.known = false;
  Expect(CheckClock(facts), WARN, "does not tell");
}

TEST_F(HostChecks, SendBuffer_LimitIsPassedWithCapabilityOnly) {
  Expect(CheckSendBuffer(facts), OK, "4194304");
  facts.host.send_buffer_limit = 212992;
  Expect(CheckSendBuffer(facts), WARN, "net.core.wmem_max is 212992, 4194304 is asked for");
  facts.host.may_administer_network = true;
  Expect(CheckSendBuffer(facts), OK, "4 MiB");
  facts.host.may_administer_network = false;
  facts.host.send_buffer_limit = std::nullopt;
  Expect(CheckSendBuffer(facts), OK, "4 MiB");
  facts.gateway.send_buffer = 0;
  Expect(CheckSendBuffer(facts), OK, "no port");
}

TEST_F(HostChecks, ProcessMemory_YamaForbidsWithoutCapability) {
  Expect(CheckProcessMemory(facts), OK, "user 0");
  facts.host.ptrace_scope = 1;
  Expect(CheckProcessMemory(facts), WARN, "ptrace_scope is 1");
  facts.host.may_trace = true;
  Expect(CheckProcessMemory(facts), OK, "CAP_SYS_PTRACE");
}

TEST_F(HostChecks, Remapping_EachThingThatKeepsItFromWorking_IsNamed) {
  Expect(CheckRemapping(facts), OK, "/dev/userfaultfd");
  facts.host.userfaultfd_device = false;
  Expect(CheckRemapping(facts), WARN, "/dev/userfaultfd cannot be opened");
  facts.host.unprivileged_userfaultfd = true;
  Expect(CheckRemapping(facts), OK, "unprivileged_userfaultfd");
  facts.host.strict_overcommit = true;
  Expect(CheckRemapping(facts), WARN, "overcommit_memory is 2");
  facts.host.userfaultfd_old = true;
  Expect(CheckRemapping(facts), WARN, "older than 6.4");
  facts.gateway.remap_allowed = false;
  Expect(CheckRemapping(facts), OK, "no pool");
}

TEST_F(HostChecks, RuntimeDir_GoneOrWritable_Fails_OfSomebodyElse_Warns) {
  Expect(CheckRuntimeDir(facts), OK, "/run/rocegw, mode 0755");
  facts.host.runtime_dir.mode = 0775;
  Expect(CheckRuntimeDir(facts), FAIL, "mode 0775");
  facts.host.runtime_dir.mode = 0755;
  facts.host.runtime_dir.uid = 1000;
  Expect(CheckRuntimeDir(facts), WARN, "of user 1000");
  facts.host.uid = 1000;
  Expect(CheckRuntimeDir(facts), OK, "of user 1000");
  facts.host.runtime_dir = {
      .exists = false, .socket = false, .mode = 0, .uid = 0, .error = "No such file"};
  Expect(CheckRuntimeDir(facts), FAIL, "No such file");
}

TEST_F(HostChecks, Sockets_GoneFails_ChangedModeWarns_OpenToAllWarns) {
  Expect(CheckSockets(facts), OK, "2 sockets");
  FileState& attach = facts.host.sockets["/run/rocegw/attach.sock"];
  attach.mode = 0666;
  Expect(CheckSockets(facts), WARN, "has mode 0666, configured is 0660");
  attach.socket = false;
  Expect(CheckSockets(facts), FAIL, "attach.sock: is no socket");
  attach = {.exists = false, .socket = false, .mode = 0, .uid = 0, .error = "No such file"};
  Expect(CheckSockets(facts), FAIL, "attach.sock: No such file");
  facts = GoodFacts();
  facts.gateway.sockets[1].mode = facts.host.sockets["/run/rocegw/grpc.sock"].mode = 0666;
  Expect(CheckSockets(facts), WARN, "grpc.sock has mode 0666");
  // Intended for programs of all users.
  facts = GoodFacts();
  facts.gateway.sockets[0].mode = facts.host.sockets["/run/rocegw/attach.sock"].mode = 0666;
  Expect(CheckSockets(facts), OK, "2 sockets");
}

TEST_F(HostChecks, Libraries_OlderAndNewer_AreToldApart) {
  Expect(CheckLibraries(facts), OK, "rocegwd 0.1.0, 1 program attached");
  facts.gateway.libraries.push_back({18, "fio", 3});
  Expect(CheckLibraries(facts), WARN,
         "1 of 2 programs attached with an older library, fio (pid 18)");
  facts.gateway.libraries.push_back({19, "new", 6});
  Expect(CheckLibraries(facts), WARN, "1 of 3 programs attached with a newer library");
  facts.gateway.libraries.clear();
  Expect(CheckLibraries(facts), OK, "0 programs");
}

}  // namespace
}  // namespace rocegw::doctor
