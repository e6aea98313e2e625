// SPDX-License-Identifier: Apache-2.0
// Verbs on objects: rocegwctl against a real controller on its admin socket. golden/ has what it
// prints; ROCEGW_UPDATE_GOLDEN=1 writes it anew.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/e2e/cli/controller_process.h"

namespace rocegw::testing {
namespace {

class RocegwctlObjectsTest : public ControllerTest {};

TEST_F(RocegwctlObjectsTest, CreateGetDescribe_AreAsRecorded) {
  EXPECT_EQ(Must("create tenant gold weight=3 quota.peak.qps=5k "
                 "quota.peak.bytes_per_second=10Gbps quota.committed.registered_bytes=16MiB "
                 "labels.suite=golden"),
            "tenants/gold created\n");
  EXPECT_EQ(Must("create pool gold/web gateways.all=true slots=4 quota.committed.qps=100 "
                 "labels.suite=golden 'allowed_peers=[10.0.0.0/8, fd00::/8]' "
                 "attach.socket_mode=0660"),
            "tenants/gold/pools/web created\n");
  EXPECT_EQ(Must("create cc slow window_bytes=64KiB labels.suite=golden -o name"),
            "ccPolicies/slow\n");
  EXPECT_EQ(Must("create rb gold-admin role=tenant-admin tenant=tenants/gold "
                 "subject=spiffe://rocegw/user/alice labels.suite=golden"),
            "roleBindings/gold-admin created\n");
  const std::string only = " --selector suite=golden";
  ExpectGolden("tenants.txt", Must("get tenants" + only));
  ExpectGolden("pools.txt", Must("get pools" + only));
  ExpectGolden("cc_policies.txt", Must("get cc" + only));
  ExpectGolden("role_bindings.txt", Must("get roleBindings" + only));
  ExpectGolden("pool.yaml", Must("get pool gold/web -o yaml"));
  ExpectGolden("pools.json", Must("get pools -o json" + only));
  ExpectGolden("pool_described.txt", Must("describe po gold/web"));
  EXPECT_EQ(Must("get pools -o name --tenant gold"), "tenants/gold/pools/web\n");
  EXPECT_EQ(Must("get pool web --tenant gold -o name"), "tenants/gold/pools/web\n");
  EXPECT_NE(Must("get tenants -o wide").find("LABELS"), std::string::npos);
}

TEST_F(RocegwctlObjectsTest, Apply_CreatesChangesAndLeavesAlone) {
  // The pool first: apply puts things in order.
  Write("fleet.yaml",
        "name: tenants/app/pools/web\n"
        "spec: {slots: 2, quota: {peak: {qps: 50}}}\n"
        "---\n"
        "name: tenants/app\n"
        "spec: {weight: 2, display_name: App}\n");
  const std::string apply = "apply -f " + File("fleet.yaml");
  EXPECT_EQ(Must(apply), "tenants/app created\ntenants/app/pools/web created\n");
  EXPECT_EQ(Must(apply), "tenants/app unchanged\ntenants/app/pools/web unchanged\n");

  // What a document does not say stays; null takes away.
  EXPECT_EQ(
      Must("apply -f -", "echo '{name: tenants/app, spec: {weight: 7, display_name: null}}' |"),
      "tenants/app changed\n");
  const auto tenant = nlohmann::json::parse(Must("get tenant app -o json"));
  EXPECT_EQ(tenant["spec"]["weight"], 7);
  EXPECT_FALSE(tenant["spec"].contains("displayName"));

  // What was read may be applied, unless somebody else was faster.
  const std::string read = Must("get tenant app -o yaml");
  Write("read.yaml", read);
  Must("update tenant app weight=8");
  Write("stale.yaml", read + "");
  const Outcome stale =
      Ctl("apply -f -", "sed 's/weight: 7/weight: 9/' " + File("stale.yaml") + " |");
  EXPECT_EQ(stale.code, 4) << stale.err;
  EXPECT_NE(stale.err.find("ETAG_MISMATCH"), std::string::npos) << stale.err;
  EXPECT_EQ(nlohmann::json::parse(Must("get tenant app -o json"))["spec"]["weight"], 8);

  EXPECT_EQ(Must("delete -f " + File("fleet.yaml")),
            "tenants/app/pools/web deleted\ntenants/app deleted\n");
  EXPECT_EQ(Must("delete -f " + File("fleet.yaml") + " --ignore-missing"),
            "tenants/app/pools/web not there\ntenants/app not there\n");
}

TEST_F(RocegwctlObjectsTest, Update_SetsClearsAndKeepsOtherLabels) {
  Must("create tenant up quota.peak.qps=5 labels.a=1 labels.b=2");
  EXPECT_EQ(Must("update tenant up quota.peak.qps= quota.peak.mrs=9 labels.a= labels.c=3"),
            "tenants/up changed\n");
  const auto tenant = nlohmann::json::parse(Must("get t up -o json"));
  EXPECT_EQ(tenant["spec"]["quota"]["peak"], nlohmann::json({{"mrs", "9"}}));
  EXPECT_EQ(tenant["meta"]["labels"], nlohmann::json({{"b", "2"}, {"c", "3"}}));
  EXPECT_EQ(Ctl("update tenant up weight=2 --etag r1").code, 4);
}

TEST_F(RocegwctlObjectsTest, DryRun_ChecksAndChangesNothing) {
  EXPECT_EQ(Must("create tenant dry --dry-run"), "tenants/dry created (dry run)\n");
  EXPECT_EQ(Ctl("get tenant dry").code, 3);
  EXPECT_EQ(Ctl("create tenant dry weight=5000 --dry-run").code, 1);
}

TEST_F(RocegwctlObjectsTest, RequestId_SameAgain_GivesTheFirstAnswer) {
  const std::string id = " --request-id 6ba7b810-9dad-41d1-80b4-00c04fd430c8";
  const std::string first = Must("create tenant once -o json" + id);
  EXPECT_EQ(Must("create tenant once -o json" + id), first);
  EXPECT_EQ(Ctl("create tenant once").code, 4);
}

TEST_F(RocegwctlObjectsTest, Refusals_TellReasonAndFieldsAndHaveTheirCodes) {
  Must("create tenant ref");
  Must("create pool ref/p");
  const struct {
    const char* arguments;
    int code;
    const char* text;
  } kCases[] = {
      {"get tenant nobody", 3, "rocegwctl: NOT_FOUND: tenants/nobody does not exist\n"},
      {"create tenant ref", 4, "rocegwctl: ALREADY_EXISTS: tenants/ref exists already\n"},
      {"create tenant big weight=5000", 1,
       "rocegwctl: tenants/big: INVALID_FIELDS: tenant.spec.weight must be at most 1000, is "
       "5000\n"},
      {"delete tenant ref", 1,
       "rocegwctl: STILL_IN_USE: tenants/ref is still used by tenants/ref/pools/p\n"},
      {"update pool ref/p 'allowed_peers=[10.0.0.1/8,x]'", 1,
       "rocegwctl: tenants/ref/pools/p: INVALID_FIELDS:\n"
       "  pool.spec.allowed_peers[0] is no prefix like 192.0.2.0/24 with nothing beyond its bits\n"
       "  pool.spec.allowed_peers[1] is no prefix like 192.0.2.0/24 with nothing beyond its "
       "bits\n"},
      {"create tenant t wieght=3", 2,
       "rocegwctl: spec.wieght: no such field; there are: display_name, quota, fleet_cap, "
       "weight, allowed_peers, donated_bytes\n"},
      {"get pool p", 2, "rocegwctl: whose pool 'p'? TENANT/p, or --tenant TENANT\n"},
      {"get qps", 2,
       "rocegwctl: of which gateway? --gateway NAME, or --local for the one on this host\n"},
      {"get qps --gateway nix", 3, "rocegwctl: NOT_FOUND: gateways/nix does not exist\n"},
      {"apply -f /nonexistent", 2, "rocegwctl: /nonexistent: No such file or directory\n"},
      {"--controller unix:/nonexistent get tenants", 6, nullptr},
      {"--context nowhere get tenants", 2, nullptr},
  };
  for (const auto& expected : kCases) {
    const Outcome outcome = Ctl(expected.arguments);
    EXPECT_EQ(outcome.code, expected.code) << expected.arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << expected.arguments;
    if (expected.text != nullptr) {
      EXPECT_EQ(outcome.err, expected.text) << expected.arguments;
    }
  }
  // Several, and not all of them.
  const Outcome partly = Ctl("delete tenant ref nobody --ignore-missing");
  EXPECT_EQ(partly.code, 8);
}

TEST_F(RocegwctlObjectsTest, Watch_TellsWhatIsThereThenChanges) {
  Must("create tenant seen labels.suite=watch");
  // The reader ends after three lines; the writer then finds nobody to write to and ends as well.
  const Outcome outcome = RunShell(
      File(""), std::string("mkfifo f$$; ") + ROCEGWCTL + " --controller unix:" + AdminSocket() +
                    " watch tenants -l suite=watch -o name > " + File("watched") +
                    " & pid=$!; until [ -s " + File("watched") + " ]; do :; done; " + ROCEGWCTL +
                    " --controller unix:" + AdminSocket() +
                    " create tenant later labels.suite=watch; until [ $(wc -l < " +
                    File("watched") + ") = 2 ]; do :; done; kill $pid; cat " + File("watched"));
  EXPECT_EQ(outcome.out, "tenants/later created\ntenants/seen\ntenants/later\n") << outcome.err;
}

TEST_F(RocegwctlObjectsTest, Tables_FitOn80Columns) {
  Must(
      "create tenant abcdefghijklmnopqrstuvwxyz1234 weight=1000 quota.committed.qps=16777215 "
      "quota.peak.qps=16777216 quota.peak.bytes_per_second=100Gbps");
  for (const char* what : {"get tenants",
                           "get pools",
                           "get cc",
                           "get rb",
                           "--help",
                           "status --help",
                           "get --help",
                           "describe --help",
                           "watch --help",
                           "create --help",
                           "apply --help",
                           "update --help",
                           "delete --help",
                           "drain --help",
                           "operations --help",
                           "events --help",
                           "explain --help",
                           "doctor --help",
                           "capture --help",
                           "fleet adopt --help",
                           "fleet rotate-keys --help",
                           "join-token --help",
                           "audit verify --help",
                           "config set-context --help",
                           "completion --help"}) {
    // On a terminal: script(1) makes one of 80 columns.
    const std::string command =
        "NO_COLOR=1 ROCEGW_CONTROLLER=unix:" + AdminSocket() + " " + ROCEGWCTL + " " + what;
    const Outcome outcome = RunShell(File(""), "script -qec '" + command + "' /dev/null");
    ASSERT_FALSE(outcome.out.empty()) << outcome.err;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      EXPECT_LE(line.size(), 80u) << what << ": " << line;
    }
  }
}

}  // namespace
}  // namespace rocegw::testing
