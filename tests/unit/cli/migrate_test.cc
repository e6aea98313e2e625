// SPDX-License-Identifier: Apache-2.0
// rocegwctl migrate as a person uses it: files in, tables of at most 80 columns and JSON out.
// ROCEGW_UPDATE_GOLDEN=1 writes the tables of golden/ anew.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/migration/plans.h"

namespace rocegw::migration {
namespace {

struct Printed {
  int code = -1;
  std::string out;  // stdout and stderr
};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class MigrateTest : public ::testing::Test {
 protected:
  MigrateTest() {
    char pattern[] = "/tmp/rocegw_migrate_XXXXXX";
    directory_ = mkdtemp(pattern);
    Inventory inventory = TestInventory({.nodes = 24, .votes = 3});
    inventory.clients.push_back({"kernel-client-1", {"n4"}, ClientKind::kPinned});
    std::ofstream(File("cluster.json")) << InventoryJson(inventory);
  }
  ~MigrateTest() override { std::filesystem::remove_all(directory_); }

  std::string File(const std::string& name) const { return directory_ + "/" + name; }

  Printed Ctl(const std::string& arguments) const {
    const std::string command =
        "cd '" + directory_ + "' && " ROCEGWCTL " migrate " + arguments + " 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    Printed run;
    char buffer[4096];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) run.out.append(buffer, n);
    const int status = pclose(pipe);
    run.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return run;
  }

  void ExpectGolden(const std::string& name, const std::string& arguments, int code) const {
    const Printed run = Ctl(arguments);
    EXPECT_EQ(run.code, code) << run.out;
    const std::string file = std::string(GOLDEN_DIR) + "/" + name;
    if (std::getenv("ROCEGW_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << run.out;
    EXPECT_EQ(run.out, ReadAll(file)) << arguments;
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }

  void Plan() const {
    const Printed run = Ctl(
        "plan cluster.json --to gateway --per-domain rack --max-unavailable 2 --name tcp-to-gateway"
        " --gate 'increase(rocegw_qp_error_events_total[10m]) == 0' -f plan.json");
    ASSERT_EQ(run.code, 0) << run.out;
  }

  std::string directory_;
};

TEST_F(MigrateTest, PlanShowsItsWavesAndIsWritten) {
  ExpectGolden(
      "migrate_plan.txt",
      "plan cluster.json --to gateway --per-domain rack --max-unavailable 2 --name tcp-to-gateway"
      " --gate 'increase(rocegw_qp_error_events_total[10m]) == 0' -f plan.json",
      0);
  std::string problem;
  EXPECT_EQ(ReadPlan(ReadAll(File("plan.json")), problem).nodes.size(), 24U) << problem;
  EXPECT_EQ(Ctl("plan cluster.json --to gateway -o json").out.substr(0, 2), "{\n");
}

TEST_F(MigrateTest, ReasonsWhyThereIsNoPlan) {
  EXPECT_EQ(Ctl("plan cluster.json --to tcp").out,
            "rocegwctl: there is no such plan:\n  every node has the transport tcp already\n");
  EXPECT_EQ(Ctl("plan cluster.json --to gateway --waves 0").code, 2);
  EXPECT_EQ(Ctl("plan cluster.json --to gateway --soak soon").code, 2);
  EXPECT_EQ(Ctl("plan nothing.json --to gateway").out, "rocegwctl: cannot read nothing.json\n");
  std::ofstream(File("bad.json")) << "{\"cluster\":\"c\"";
  EXPECT_EQ(Ctl("plan bad.json --to gateway").out, "rocegwctl: bad.json: not JSON\n");
}

TEST_F(MigrateTest, DiffNamesWhatChanged) {
  Plan();
  EXPECT_EQ(Ctl("diff plan.json cluster.json").out, "the cluster is as planned\n");
  Inventory inventory = TestInventory({.nodes = 25, .votes = 3});
  inventory.nodes[0].domains["rack"] = "r9";
  std::ofstream(File("now.json")) << InventoryJson(inventory);
  ExpectGolden("migrate_diff.txt", "diff plan.json now.json", 10);
  EXPECT_EQ(nlohmann::json::parse(Ctl("diff plan.json now.json -o json").out)["differences"].size(),
            3U);
}

TEST_F(MigrateTest, InventoryOfAnInstalledAdapter_AsTableAndAsFileForPlan) {
  std::filesystem::create_directory(File("adapters"));
  const std::string program = File("adapters/files");
  std::ofstream(program) << "#!/bin/sh\ntr -d '\\n' < '" << File("cluster.json") << "'\necho\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  ExpectGolden("migrate_inventory.txt", "inventory c1 --adapters adapters --adapter files", 0);
  const std::string file = ReadAll(File("cluster.json"));
  EXPECT_EQ(Ctl("inventory c1 --adapters adapters --adapter files -o json").out, file);
  EXPECT_EQ(Ctl("inventory c1 -o json -- '" + program + "'").out, file);
  EXPECT_EQ(Ctl("inventory c1 --adapters adapters --adapter ../files").code, 2);
  EXPECT_EQ(Ctl("inventory c1 --adapters adapters --adapter ceph").out,
            "rocegwctl: there is no adapter ceph in adapters; there: files\n");
  EXPECT_EQ(Ctl("inventory c1").code, 2);
  EXPECT_EQ(Ctl("inventory c1 --adapter files -- '" + program + "'").code, 2);
}

TEST_F(MigrateTest, AdapterExecIsNamedInTheInventoryOfAProgram) {
  const std::string program = File("program");
  std::ofstream(program) << "#!/bin/sh\ntr -d '\\n' < '" << File("cluster.json") << "'\necho\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const auto inventory =
      nlohmann::json::parse(Ctl("inventory c1 --adapter exec -o json -- '" + program + "'").out);
  EXPECT_EQ(inventory["adapter"], "exec");
  EXPECT_EQ(inventory["nodes"], nlohmann::json::parse(ReadAll(File("cluster.json")))["nodes"]);
  // Without a program the installed adapter of that name is called, which finds it itself.
  std::filesystem::create_directory(File("adapters"));
  std::filesystem::copy_file(program, File("adapters/exec"));
  EXPECT_EQ(
      nlohmann::json::parse(Ctl("inventory c1 --adapters adapters --adapter exec -o json").out),
      inventory);
}

TEST_F(MigrateTest, SimulateShowsWhereAFailureEndsAndTheWaysOut) {
  Plan();
  ExpectGolden("migrate_simulate.txt", "simulate plan.json", 0);
  ExpectGolden("migrate_simulate_fail.txt", "simulate plan.json --fail node=n6,step=switch", 10);
  ExpectGolden("migrate_simulate_back.txt",
               "simulate plan.json --fail node=n6,step=switch --then rollback", 0);
  const auto json = nlohmann::json::parse(
      Ctl("simulate plan.json --fail node=n6,step=drain,kind=lost -o json --events").out);
  EXPECT_EQ(json["state"], "PAUSED");
  EXPECT_EQ(json["pause_reason"], "lost-node");
  EXPECT_FALSE(json["events"].empty());
  EXPECT_EQ(Ctl("simulate plan.json --fail node=n99").code, 2);
  EXPECT_EQ(Ctl("simulate plan.json --then approve").code, 2);
}

TEST_F(MigrateTest, AnEditedPlanIsRefused) {
  Plan();
  std::string text = ReadAll(File("plan.json"));
  text.replace(text.find("\"max_unavailable\": 2"), 20, "\"max_unavailable\": 7");
  std::ofstream(File("plan.json")) << text;
  const Printed run = Ctl("simulate plan.json");
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.out.find("does not fit its hash"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace rocegw::migration
