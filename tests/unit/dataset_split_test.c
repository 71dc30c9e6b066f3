/* dataset_split_test -- which cameras are test views: names, lists beside the scene, --split. */
#include "tests/unit/dataset_fixture.h"

static void every_8th_name_is_test_when_nothing_says_so(void **state)
{
    char names[17][16];
    const char *images[18] = {0};
    (void)state;
    for (int i = 0; i < 17; i++) {
        snprintf(names[i], sizeof names[i], "p%02d.png", 16 - i);
        images[i] = names[i];
    }
    put_colmap("sparse/0", pinhole, images);
    find();
    for (uint32_t i = 0; i < 17; i++) {
        snprintf(names[0], sizeof names[0], "p%02u", i);
        assert_string_equal(data.set.cameras[i].name, names[0]);
        assert_string_equal(data.set.cameras[i].split, i % 8 == 0 ? "test" : "train");
    }
}

static void explicit_splits_win(void **state)
{
    const char *const frames[] = {"a.png", "b.png", "test/c.png", NULL};
    (void)state;
    put_photo("a.png", 8, 6);
    put_photo("b.png", 8, 6);
    put_photo("test/c.png", 8, 6);
    put_transforms("transforms.json", "\"fl_x\": 7", frames);
    find();
    assert_string_equal(data.set.cameras[0].split, "train");
    assert_string_equal(data.set.cameras[2].split, "test");
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7, \"test_filenames\": [\"./b.png\"]", frames);
    find();
    assert_string_equal(data.set.cameras[1].split, "test");
    assert_string_equal(data.set.cameras[2].split, "train");
}

static void lists_beside_the_scene_choose_test_views(void **state)
{
    bool used;
    (void)state;
    put_pairs();
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "Tttt");
    put("sparse/0/train.txt", "left/1.png\nright/2.png\n");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tTTt");
    put("train.txt", "left/1.png\nleft/2.png\n");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "ttTT");
    put("sparse/0/test.txt", "right/2.png\n");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tttT");
    assert_string_equal(why_not("train.txt", &used), "another list takes precedence");
    put("test.txt",
        "\xef\xbb\xbf# held out\r\n\n  ./images_2/left/2.JPG \r\n.\\right\\1\nnowhere.png");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tTTt");
    assert_string_equal(data.set.split_rule, "names in test.txt");
    assert_non_null(
        strstr(data.set.notes, "1 of 3 names match no camera; the first is 'nowhere.png'"));
    (void)why_not("test.txt", &used);
    assert_true(used);
    for (uint32_t i = 0; i < data.set.n_sources; i++)
        used &= strcmp(data.set.sources[i].path, at("sparse/0/test.txt")) != 0;
    assert_true(used);
    assert_string_equal(data.set.sources[data.set.n_sources - 1].path, at("test.txt"));
}

static void lists_about_something_else_are_passed_over(void **state)
{
    bool used;
    (void)state;
    put_pairs();
    put("test.txt", "This folder holds a scan of a chair.\n");
    put("train.txt", "left/1\n\xff\n");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "Tttt");
    assert_string_equal(data.set.split_rule, "every 8th by name");
    assert_string_equal(why_not("test.txt", &used), "none of its names belongs to a camera");
    assert_non_null(strstr(why_not("train.txt", &used), "not UTF-8"));
}

static void camera_files_come_before_lists(void **state)
{
    const char *const frames[] = {"a.png", "b.png", "c.png", NULL};
    (void)state;
    for (int i = 0; frames[i]; i++) put_photo(frames[i], 8, 6);
    put("test.txt", "c\n");
    put_transforms("transforms.json", "\"fl_x\": 7, \"val_filenames\": [\"b.png\"]", frames);
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tTt");
    put_transforms(
        "transforms.json",
        "\"fl_x\": 7, \"val_filenames\": [], \"train_filenames\": [\"b.png\", \"./c.png\"]",
        frames);
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "Ttt");
    put_transforms("transforms.json",
                   "\"fl_x\": 7, \"train_filenames\": [\"a.png\", \"b.png\", \"c.png\"]", frames);
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "ttt");
    assert_string_equal(data.set.split_rule, "as the camera files say");
    put_transforms("transforms.json", "\"fl_x\": 7, \"test_filenames\": []", frames);
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "ttT");
}

static void cfg_args_says_whether_any_were_held_out(void **state)
{
    (void)state;
    put_pairs();
    put("cfg_args", "Namespace(eval=False, sh_degree=3)");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tttt");
    assert_non_null(strstr(data.set.split_rule, "cfg_args says eval=False"));
    put("cfg_args", "Namespace(eval=True, sh_degree=3)");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "Tttt");
    put("cfg_args", "Namespace(eval=False, sh_degree=3)");
    put("sparse/0/test.txt", "left/2.png\n");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tTtt");
}

static void the_user_has_the_last_word_on_the_split(void **state)
{
    char list[TEST_PATH_MAX];
    (void)state;
    snprintf(list, sizeof list, "%s", at("mine.txt"));
    const kiln_dataset_wishes names = {.split = {.kind = KILN_SPLIT_NAMES, .file = list}};
    put_pairs();
    put("test.txt", "left/2.png\n");
    find_as(&(kiln_dataset_wishes){.split = {.kind = KILN_SPLIT_EVERY, .every = 3}});
    assert_string_equal(splits(), "TttT");
    find_as(&(kiln_dataset_wishes){.split = {.kind = KILN_SPLIT_EVERY, .every = 1}});
    assert_string_equal(splits(), "TTTT");
    find_as(&(kiln_dataset_wishes){.split = {.kind = KILN_SPLIT_ALL_TRAIN}});
    assert_string_equal(splits(), "tttt");
    put("mine.txt", "right/1.png\n");
    find_as(&names);
    assert_string_equal(splits(), "ttTt");
    put("mine.txt", "2.png\n"); /* without its folder: each of that name */
    find_as(&names);
    assert_string_equal(splits(), "tTtT");
    put("mine.txt", "elsewhere/left/1\n");
    find_as(&names);
    assert_string_equal(splits(), "Tttt");
    put("mine.txt", "middle/1.png\n"); /* another photo, though its last part is known */
    find_as_refused(root, &names, "none of the 1 names");
    put("mine.txt", "# nothing\n\n");
    find_as_refused(root, &names, "holds no name");
    put("mine.txt", "\xff\n");
    find_as_refused(root, &names, "not UTF-8");
}

static void splits_are_checked_as_texts(void **state)
{
    static const char *const refused[] = {"",         "every",     "every:",   "every:0",
                                          "every:-1", "every:1.5", "every:8 ", "names",
                                          "names:",   "all",       "Auto",     "every:99999999999"};
    kiln_split s;
    kiln_error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_int_equal(kiln_split_parse(refused[i], &s, &err), KILN_E_USAGE);
    assert_int_equal(kiln_split_parse("auto", &s, &err), KILN_OK);
    assert_int_equal(s.kind, KILN_SPLIT_AUTO);
    assert_int_equal(kiln_split_parse("every:08", &s, &err), KILN_OK);
    assert_true(s.kind == KILN_SPLIT_EVERY && s.every == 8);
    assert_int_equal(kiln_split_parse("names:a:b", &s, &err), KILN_OK);
    assert_true(s.kind == KILN_SPLIT_NAMES && strcmp(s.file, "a:b") == 0);
    assert_int_equal(kiln_split_parse("all-train", &s, &err), KILN_OK);
    assert_int_equal(s.kind, KILN_SPLIT_ALL_TRAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(every_8th_name_is_test_when_nothing_says_so),
        IN_SCRATCH(explicit_splits_win),
        IN_SCRATCH(lists_beside_the_scene_choose_test_views),
        IN_SCRATCH(lists_about_something_else_are_passed_over),
        IN_SCRATCH(camera_files_come_before_lists),
        IN_SCRATCH(cfg_args_says_whether_any_were_held_out),
        IN_SCRATCH(the_user_has_the_last_word_on_the_split),
        cmocka_unit_test(splits_are_checked_as_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
