// SPDX-License-Identifier: Apache-2.0
// The commands as a user meets them: help, exit codes, one-line errors, contracts, explanations.
#include <algorithm>

#include <fmt/format.h>

#include "conformance/json_schema.hpp"
#include "harness/program_output.hpp"

namespace qkcts {
namespace {

class Cli : public ProgramTest {
 protected:
  static inline const std::string corpus = QKCTS_SOURCE_DIR "/vectors/golden/smoke.h5";
};

TEST_F(Cli, EveryCommandHasHelpWithAnExample) {
  EXPECT_EQ(qkcts("--help").code, 0);
  EXPECT_EQ(qkcts("--version").out, "0.1.0\n");
  for (const char* command : {"contract",      "contract list",
                              "contract show", "contract validate",
                              "contract diff", "contract from-config",
                              "generate",      "verify",
                              "inspect",       "adapters",
                              "describe",      "run",
                              "export",        "answer",
                              "check",         "gate",
                              "baseline",      "baseline update",
                              "certify",       "verify-certificate",
                              "explain",       "diagnose"}) {
    const ProgramOutput help = qkcts(std::string(command) + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_NE(help.out.find("qkcts " + std::string(command)), std::string::npos) << help.out;
    EXPECT_NE(help.out.find("Example"), std::string::npos) << command;
  }
}

TEST_F(Cli, UsageErrorsAreTwo) {
  for (const char* arguments :
       {"", "frobnicate", "run", "run scalar", "run scalar x.h5 --nonsense", "run scalar x.h5 --repeat 0",
        "run scalar x.h5 --timeout -1", "explain x.h5", "contract", "contract frob"}) {
    const ProgramOutput usage = qkcts(arguments);
    EXPECT_EQ(usage.code, 2) << arguments;
    EXPECT_TRUE(is_one_line(usage.err)) << arguments << "\n" << usage.err;
    EXPECT_EQ(usage.err.rfind("qkcts: ", 0), 0u) << usage.err;
    EXPECT_NE(usage.err.find("--help"), std::string::npos) << usage.err;
  }
}

TEST_F(Cli, UsageErrorsSayWhatIsWrongAndWhatToDo) {
  const ProgramOutput bogus = qkcts("bogus");
  EXPECT_EQ(bogus.err.rfind("qkcts: 'bogus' is no command or option here; there are: contract, generate,", 0), 0u)
      << bogus.err;
  EXPECT_EQ(qkcts("").err.rfind("qkcts: a command is missing; there are: contract,", 0), 0u);
  EXPECT_NE(qkcts("contract frob").err.find("'frob' is no command or option here; there are: list, show"),
            std::string::npos);
  EXPECT_NE(qkcts("run scalar").err.find("FILE is required; see `qkcts run --help`"), std::string::npos)
      << qkcts("run scalar").err;
}

// What stands in a flag and is none is a mistake of usage, whatever the files say.
TEST_F(Cli, MalformedValuesAreTwo) {
  const std::string first = qkcts("inspect " + corpus + " --names").out;
  const std::string explain = fmt::format("explain {} {}", corpus, first.substr(0, first.find('\n')));
  for (const std::string& arguments : std::vector<std::string>{
           "run scalar " + corpus + " --stages foo", "run scalar " + corpus + " --stages probs,,output",
           "run scalar " + corpus + " --stages ''", "generate --contract plain_sdpa --format float8 -o " + path("x.h5"),
           "generate --contract plain_sdpa --shape 1,2 -o " + path("x.h5"),
           "generate --contract plain_sdpa --family nonsense -o " + path("x.h5"), explain + " nonsense 0,0,0,0",
           explain + " output 0,0,0", explain + " output a,0,0,0", explain + " output 0,0,0,-1",
           explain + " output 0,0,0,0 --profile nonsense", "run scalar " + corpus + " -- --gtest_nonsense",
           "inspect " + corpus + " --format csv", "inspect " + corpus + " --separation --format yaml",
           "generate --separate plain_sdpa -o " + path("x.h5"),
           "generate smoke --separate plain_sdpa henry2020_l2 -o " + path("x.h5"),
           "generate --separate plain_sdpa henry2020_l2 --shape 1,2 -o " + path("x.h5")}) {
    const ProgramOutput usage = qkcts(arguments);
    EXPECT_EQ(usage.code, 2) << arguments << "\n" << usage.err;
    EXPECT_TRUE(is_one_line(usage.err)) << arguments << "\n" << usage.err;
    EXPECT_EQ(usage.err.rfind("qkcts: ", 0), 0u) << usage.err;
  }
}

// Stages and rounding points of ABI 1.2, from the inputs to the explanation of an element.
TEST_F(Cli, AProjectionIsGeneratedRunAndExplained) {
  const std::string file = path("projection.h5");
  const ProgramOutput made =
      qkcts("generate --contract clause_round_projection --family halfway --shape 1,2,1,3,4,8,6 -o " + file);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.out.find(": 1 case, "), std::string::npos) << made.out;
  const ProgramOutput run = qkcts("run scalar " + file);
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  const std::size_t projected = run.out.find(" q_proj "), normed = run.out.find(" q_norm ");
  EXPECT_LT(projected, normed) << run.out;
  EXPECT_EQ(qkcts("run scalar " + file + " --stages q_proj,k_proj").code, 0);
  const ProgramOutput unknown = qkcts("run scalar " + file + " --stages q_project");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("q_proj, k_proj, q_norm, k_norm, v_norm, q_rope"), std::string::npos) << unknown.err;
  const ProgramOutput explained = qkcts("explain " + file + " halfway q_proj 0,0,0,0");
  EXPECT_EQ(explained.code, 0) << explained.out << explained.err;
  EXPECT_NE(explained.out.find("clause QK-PROJ"), std::string::npos) << explained.out;
  EXPECT_NE(explained.out.find(", rounded to bfloat16 by the contract\n"), std::string::npos) << explained.out;
  const ProgramOutput plain = qkcts("explain " + file + " halfway output 0,0,0,0");
  EXPECT_EQ(plain.out.find("by the contract"), std::string::npos) << plain.out;
}

// A case says which wrong contracts it would catch: the place of epsilon near its root, nothing at the contract itself.
TEST_F(Cli, ACaseShowsItsSeparations) {
  const ProgramOutput shown = qkcts(fmt::format("inspect {} qwen3_rmsnorm/eps_edge/bfloat16 --separation", corpus));
  EXPECT_EQ(shown.code, 0) << shown.err;
  for (const char* expected : {"neighbouring contract", "norm.root=outside_root", "norm.gain=one_plus_w", "above 1:"})
    EXPECT_NE(shown.out.find(expected), std::string::npos) << expected << "\n" << shown.out;
  EXPECT_EQ(shown.out.find("q_norm.root=inside_root"), std::string::npos) << "that is the contract itself";
}

TEST_F(Cli, ContractsOfModelsAreFoundByPattern) {
  const ProgramOutput made = qkcts("generate --contract 'gpt_oss*' --shape 1,2,1,2,3,64,4 -o " + path("models.h5"));
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_NE(qkcts("inspect " + path("models.h5") + " --names").out.find("gpt_oss"), std::string::npos);
}

TEST_F(Cli, BadInputIsThreeWithOneLine) {
  written("text.h5", "this is no HDF5");
  written("bad.json", "{\"schema\": \"qkcts-limits/1\", \"limits\": 7}");
  for (const std::string& arguments : std::vector<std::string>{
           "run scalar /nonexistent.h5", "run scalar " + path("text.h5"),
           "run scalar " + corpus + " --limits " + path("bad.json"), "contract show nonsense",
           "contract validate " + path("bad.json"), "explain " + corpus + " nonsense q_norm 0,0,0,0",
           "explain " + corpus + " qwen3_rmsnorm/eps_edge/bfloat16 output 0,0,0,0 --profile bf16_f32acc_hopper"}) {
    const ProgramOutput bad = qkcts(arguments);
    EXPECT_EQ(bad.code, 3) << arguments << "\n" << bad.err;
    EXPECT_TRUE(is_one_line(bad.err)) << arguments << "\n" << bad.err;
  }
}

// The contract goes to stdout or to a file, what was read to stderr; what is not understood ends with 3 and one line.
TEST_F(Cli, AContractIsDerivedFromAConfiguration) {
  written("config.json", R"({"model_type": "qwen3_moe", "rms_norm_eps": 3e-6, "hidden_act": "silu"})");
  const ProgramOutput derived = qkcts("contract from-config " + path("config.json") + " -o " + path("derived.json"));
  EXPECT_EQ(derived.code, 0) << derived.err;
  EXPECT_EQ(derived.out, "");
  for (const char* text : {"used     rms_norm_eps", "ignored  hidden_act", "q_norm.eps             1e-06 -> 3e-06"})
    EXPECT_NE(derived.err.find(text), std::string::npos) << text << derived.err;
  EXPECT_EQ(qkcts("contract validate " + path("derived.json")).code, 0);
  const ProgramOutput difference = qkcts("contract diff qwen3_moe " + path("derived.json"));
  EXPECT_EQ(difference.code, 1);
  EXPECT_EQ(std::count(difference.out.begin(), difference.out.end(), '\n'), 3) << difference.out;  // head, q, k
  written("config.json", R"({"model_type": "qwen3_moe", "qk_novelty": 1})");
  const ProgramOutput refused = qkcts("contract from-config " + path("config.json"));
  EXPECT_EQ(refused.code, 3);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("/qk_novelty: is 1; speaks of attention"), std::string::npos) << refused.err;
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
}

TEST_F(Cli, ContractsAreShownAndCompared) {
  EXPECT_NE(qkcts("contract list").out.find("qwen3_rmsnorm"), std::string::npos);
  const ProgramOutput shown = qkcts("contract show qwen3_rmsnorm --json");
  EXPECT_EQ(shown.code, 0);
  written("mine.json", shown.out);
  EXPECT_EQ(qkcts("contract validate " + path("mine.json")).code, 0);
  EXPECT_EQ(qkcts("contract diff qwen3_rmsnorm " + path("mine.json")).code, 0);
  const ProgramOutput diff = qkcts("contract diff qwen3_rmsnorm llama4_rms_unweighted");
  EXPECT_EQ(diff.code, 1);
  EXPECT_NE(diff.out.find("QK-ROPE-01"), std::string::npos) << diff.out;
}

TEST_F(Cli, ExplainRefusesWhatDoesNotExist) {
  const std::string slug = qkcts("run scalar " + corpus + " -- --gtest_list_tests").out;
  const std::string first = slug.substr(0, slug.find('.'));
  EXPECT_EQ(qkcts("explain " + corpus + " " + first + " output 0,0,0,0").code, 0);
  const ProgramOutput outside = qkcts("explain " + corpus + " " + first + " output 0,0,0,99999");
  EXPECT_EQ(outside.code, 2);
  EXPECT_NE(outside.err.find("index 4 must lie in 0.."), std::string::npos) << outside.err;
  const ProgramOutput absent = qkcts("explain " + corpus + " " + first + " v_norm 0,0,0,0");
  EXPECT_EQ(absent.code, 2);
  EXPECT_NE(absent.err.find("has no stage v_norm; it has: "), std::string::npos) << absent.err;
}

TEST_F(Cli, AdaptersAreListed) {
  const ProgramOutput list = qkcts("adapters");
  EXPECT_EQ(list.code, 0);
  EXPECT_NE(list.out.find("scalar"), std::string::npos);
  const ProgramOutput described = qkcts("describe scalar");
  EXPECT_EQ(described.code, 0);
  EXPECT_NO_THROW(require_schema(parse_json(described.out, "out"), "adapter_describe", "out"));
}

}  // namespace
}  // namespace qkcts
