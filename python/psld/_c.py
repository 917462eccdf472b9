"""What include/*.h declare, for ctypes. Written by tools/make-declarations; changes are lost.

Objects, and arrays of numbers, are void pointers; enums are ints.
"""
# fmt: off
# flake8: noqa: E501
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_int64,
                    c_size_t, c_uint, c_uint64, c_void_p)
from typing import Any, Dict, List, Tuple

VERSION = "0.2.0"
STATUS: Any = "status"  # the result of a function that may fail

PSLD_UNSET = -1
PSLD_DISTANCE_LIMIT = 0.005
PSLD_WEAK_SCALE = 1.5
PSLD_OK = 0
PSLD_NO_MEMORY = 1
PSLD_BAD_ARGUMENT = 2
PSLD_BAD_INPUT = 3
PSLD_IO = 4
PSLD_CANCELLED = 5
PSLD_NOT_FINITE = 6
PSLD_DEVICE_FAILED = 7
PSLD_NUMBER_SIZE = 32
PSLD_LOG_INFO = 0
PSLD_LOG_WARNING = 1
psld_log_fn = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
psld_progress_fn = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)
PSLD_F64 = 0
PSLD_F32 = 1
PSLD_U8 = 2
PSLD_I32 = 3
PSLD_I64 = 4
PSLD_MAX_RANK = 8


class psld_array(Structure):
    _fields_ = [
        ("type", c_int),
        ("rank", c_int),
        ("shape", c_size_t * 8),
        ("count", c_size_t),
        ("data", c_void_p),
    ]


PSLD_MAX_K = 8
PSLD_NAME_SIZE = 64
PSLD_HSM = 0
PSLD_DSM = 1


class psld_recipe_spec(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char * 64),
        ("k", c_int),
        ("D", c_double * 64),
        ("Q", c_double * 64),
        ("mass", c_double * 7),
        ("init", c_double * 7),
        ("beta_min", c_double),
        ("beta_max", c_double),
        ("stabiliser", c_double),
        ("upper", c_int),
        ("natural", c_int),
        ("mode", c_int),
        ("reserved", c_int),
    ]


class psld_preset_parameter(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("initial", c_char_p),
        ("help", c_char_p),
    ]


class psld_preset_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("summary", c_char_p),
        ("k", c_int),
        ("parameters", POINTER(psld_preset_parameter)),
    ]


PSLD_OVERDAMPED = 0
PSLD_CRITICAL = 1
PSLD_UNDERDAMPED = 2


class psld_analysis(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("eigenvalue_re", c_double * 8),
        ("eigenvalue_im", c_double * 8),
        ("damping", c_int),
        ("rate", c_double),
        ("distance", c_double),
        ("long_enough", c_int),
        ("sigma_max", c_double),
    ]


PSLD_MAX_VARIABLES = 24
PSLD_MAX_DATA_VARIABLES = 8


class psld_process_report(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("low", c_double * 24),
        ("high", c_double * 24),
        ("least_eigenvalue", c_double),
        ("skewness", c_double),
        ("residual", c_double),
        ("grids", c_int),
        ("reserved", c_int),
        ("points", c_double * 4),
        ("grid_residual", c_double * 4),
        ("rate", c_double * 4),
        ("drift_away", c_double),
        ("chance", c_double),
        ("mixing", c_double),
    ]


class psld_exchange(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("Q", c_void_p),
        ("density", c_void_p),
        ("low", c_double * 3),
        ("high", c_double * 3),
        ("skewness", c_double),
        ("current", c_double),
        ("known", c_double),
    ]


class psld_key(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("type", c_char_p),
        ("initial", c_char_p),
        ("choices", c_char_p),
        ("min", c_double),
        ("max", c_double),
        ("may_change", c_int),
        ("help", c_char_p),
    ]


class psld_states(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("n", c_size_t),
        ("dim", c_size_t),
        ("z", c_void_p),
        ("t", c_void_p),
        ("sample", c_void_p),
        ("label", c_void_p),
    ]


psld_score_fn = CFUNCTYPE(c_int, c_void_p, POINTER(psld_states), c_void_p)
psld_score_gradient_fn = CFUNCTYPE(c_int, c_void_p, POINTER(psld_states), c_void_p, c_void_p, c_void_p)
PSLD_PREDICTS_EPS = 0
PSLD_PREDICTS_SCORE = 1
PSLD_PREDICTS_DATA = 2


class psld_callback(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("predicts", c_int),
        ("recipe", c_void_p),
        ("predict", psld_score_fn),
        ("gradient", psld_score_gradient_fn),
        ("user", c_void_p),
        ("classes", c_int),
        ("needs_label", c_int),
        ("is_exact", c_int),
        ("reserved", c_int),
    ]


psld_classify_fn = CFUNCTYPE(c_int, c_void_p, POINTER(psld_states), c_void_p, c_void_p, c_void_p)


class psld_labels(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("label", c_void_p),
        ("count", c_size_t),
        ("first", c_uint64),
        ("cfg", c_double),
        ("sigma_min", c_double),
        ("sigma_max", c_double),
    ]


class psld_task_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("summary", c_char_p),
        ("uses_factor", c_int),
        ("uses_blur", c_int),
        ("uses_known", c_int),
        ("uses_matrix", c_int),
        ("needs_colour", c_int),
    ]


class psld_task(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("rank", c_int),
        ("factor", c_int),
        ("shape", c_size_t * 8),
        ("blur", c_double),
        ("known", c_void_p),
        ("matrix", c_void_p),
        ("rows", c_int),
        ("reserved", c_int),
    ]


class psld_restore_method_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("summary", c_char_p),
        ("needs_gradient", c_int),
        ("uses_iterations", c_int),
    ]


class psld_restore_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("method", c_char_p),
        ("noise", c_double),
        ("scale", c_double),
        ("tolerance", c_double),
        ("iterations", c_int),
        ("reserved", c_int),
    ]


psld_noise_fn = CFUNCTYPE(None, c_void_p, c_uint64, c_uint64, c_size_t, c_size_t, c_void_p)


class psld_evaluation(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("states", POINTER(psld_states)),
        ("eps", c_void_p),
    ]


psld_watch_fn = CFUNCTYPE(c_int, c_void_p, POINTER(psld_evaluation))


class psld_inpainting(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("images", c_int),
        ("each", c_int),
        ("x", c_void_p),
        ("known", c_void_p),
        ("repeats", c_int),
        ("jump", c_int),
        ("lagging", c_int),
        ("reserved", c_int),
    ]


class psld_sample_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("sampler", c_char_p),
        ("grid", c_char_p),
        ("rho", c_double),
        ("nfe", c_int),
        ("order", c_int),
        ("eta", c_double),
        ("detail", c_double),
        ("tolerance", c_double),
        ("eps", c_double),
        ("end_sigma", c_double),
        ("clip", c_double),
        ("threshold", c_double),
        ("denoise", c_int),
        ("corrector", c_int),
        ("corrector_size", c_double),
        ("ode_group", c_int),
        ("batch", c_int),
        ("seed", c_uint64),
        ("noise", psld_noise_fn),
        ("noise_user", c_void_p),
        ("progress", psld_progress_fn),
        ("progress_user", c_void_p),
        ("watch", psld_watch_fn),
        ("watch_user", c_void_p),
        ("inpainting", POINTER(psld_inpainting)),
        ("labels", POINTER(psld_labels)),
    ]


class psld_quality_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("summary", c_char_p),
        ("sampler", c_char_p),
        ("grid", c_char_p),
        ("nfe", c_int),
        ("eta", c_double),
    ]


class psld_sampler_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("summary", c_char_p),
        ("grid", c_char_p),
        ("nfe", c_int),
        ("evaluations", c_int),
        ("order", c_int),
        ("max_order", c_int),
        ("detail", c_double),
        ("end_sigma", c_double),
        ("adaptive", c_int),
        ("deterministic", c_int),
        ("reversible", c_int),
        ("predicts_data", c_int),
        ("uses_eta", c_int),
        ("uses_detail", c_int),
        ("uses_tolerance", c_int),
        ("consistency", c_int),
    ]


class psld_grid_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("summary", c_char_p),
        ("in_sigma", c_int),
        ("uses_rho", c_int),
    ]


class psld_device_info(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("id", c_char * 16),
        ("kind", c_char * 16),
        ("name", c_char * 128),
        ("platform", c_char * 128),
        ("driver", c_char * 128),
        ("memory", c_uint64),
        ("largest_block", c_uint64),
        ("units", c_uint64),
        ("half", c_int),
        ("reserved", c_int),
    ]


PSLD_EXACT_MODEL = 0
PSLD_SCORE_MODEL = 1
PSLD_CLASSIFIER = 2


class psld_model_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("process", c_char_p),
        ("config", c_char_p),
        ("overrides", POINTER(c_char_p)),
        ("override_count", c_int),
        ("raw", c_int),
        ("reference", c_int),
        ("blank", c_int),
        ("weak", c_char_p),
        ("weak_scale", c_double),
        ("ema", c_double),
        ("cfg", c_double),
        ("isa", c_char_p),
        ("precision", c_char_p),
        ("device", c_char_p),
    ]


psld_samples_fn = CFUNCTYPE(c_int, c_void_p, c_uint64, POINTER(psld_array))


class psld_kernel_time(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kernel", c_char * 64),
        ("steps", c_size_t),
        ("seconds", c_double),
        ("flops", c_double),
    ]


psld_kernel_time_fn = CFUNCTYPE(None, c_void_p, POINTER(psld_kernel_time))
psld_tensor_fn = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p, c_int, c_void_p)
PSLD_MAX_ZOOM = 64
PSLD_RESAMPLE_LANCZOS = 0
PSLD_RESAMPLE_BILINEAR = 1
PSLD_RESAMPLE_BICUBIC = 2
PSLD_RESAMPLE_BOX = 3
PSLD_RESAMPLE_NEAREST = 4
PSLD_RESAMPLE_BILINEAR_PLAIN = 5


class psld_resample_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("summary", c_char_p),
        ("filter", c_int),
        ("antialiases", c_int),
    ]


class psld_data_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("image_size", c_int),
        ("channels", c_int),
        ("stretch", c_int),
        ("resample", c_int),
        ("test", c_int),
        ("strict", c_int),
        ("once", c_int),
        ("class_count", c_int),
        ("classes", POINTER(c_char_p)),
        ("memory", c_int64),
        ("cache_dir", c_char_p),
        ("skip_limit", c_double),
    ]


class psld_toy_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("summary", c_char_p),
        ("classes", c_int),
    ]


psld_metric_open_fn = CFUNCTYPE(c_int, c_char_p, c_int, c_void_p)
psld_metric_reference_fn = CFUNCTYPE(c_int, c_void_p, POINTER(psld_array))
psld_metric_measure_fn = CFUNCTYPE(c_int, c_void_p, POINTER(psld_array), c_void_p)
psld_metric_close_fn = CFUNCTYPE(None, c_void_p)


class psld_training_metric(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("open", psld_metric_open_fn),
        ("set_reference", psld_metric_reference_fn),
        ("measure", psld_metric_measure_fn),
        ("close", psld_metric_close_fn),
    ]


class psld_training_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("config", c_char_p),
        ("data", c_char_p),
        ("overrides", POINTER(c_char_p)),
        ("override_count", c_int),
        ("classifier", c_int),
        ("init", c_char_p),
        ("seconds", c_double),
        ("metric", POINTER(psld_training_metric)),
        ("isa", c_char_p),
        ("tune", c_char_p),
        ("device", c_char_p),
    ]


class psld_training_report(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("step", c_uint64),
        ("steps", c_uint64),
        ("samples", c_uint64),
        ("loss", c_double),
        ("norm", c_double),
        ("rate", c_double),
        ("seconds", c_double),
        ("held_out", c_double),
        ("accuracy", c_double),
        ("held_out_raw", c_double),
        ("metric", c_double),
        ("bits", c_double),
    ]


psld_training_fn = CFUNCTYPE(c_int, c_void_p, POINTER(psld_training_report))


class psld_run_info(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("step", c_uint64),
        ("steps", c_uint64),
        ("saved", c_uint64),
        ("checkpoints", c_size_t),
        ("loss", c_double),
        ("held_out", c_double),
        ("seconds", c_double),
        ("running", c_int),
        ("classifier", c_int),
        ("accuracy", c_double),
        ("bits", c_double),
    ]


psld_scatter_fn = CFUNCTYPE(c_int, c_void_p, c_size_t, c_size_t, c_void_p, c_void_p)
psld_products_fn = CFUNCTYPE(c_int, c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p)
psld_eigen_fn = CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p, c_void_p)
psld_nuclear_norm_fn = CFUNCTYPE(c_int, c_void_p, c_size_t, c_size_t, c_void_p, c_void_p)


class psld_linear_algebra(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("scatter", psld_scatter_fn),
        ("products", psld_products_fn),
        ("eigen", psld_eigen_fn),
        ("nuclear_norm", psld_nuclear_norm_fn),
        ("user", c_void_p),
    ]


class psld_kid_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("subsets", c_int),
        ("subset_size", c_int),
        ("seed", c_int64),
    ]


PSLD_SET_IMAGES = 0
PSLD_SET_ROWS = 1
PSLD_SET_STATISTICS = 2


class psld_hiding(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("part", c_char_p),
        ("masks", c_void_p),
        ("lagging", c_int),
        ("reserved", c_int),
    ]


PSLD_FRECHET = 1
PSLD_INCEPTION_SCORE = 2
PSLD_KID = 4
PSLD_PRECISION_RECALL = 8
PSLD_SLICED = 16


class psld_metric_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("summary", c_char_p),
        ("bit", c_uint),
        ("needs_pair", c_int),
        ("needs_rows", c_int),
        ("needs_classes", c_int),
    ]


class psld_compare_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("metrics", c_uint),
        ("splits", c_int),
        ("neighbours", c_int),
        ("kid_subsets", c_int),
        ("kid_subset_size", c_int),
        ("directions", c_int),
        ("kid_seed", c_int64),
        ("seed", c_uint64),
        ("progress", psld_progress_fn),
        ("progress_user", c_void_p),
    ]


class psld_comparison(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("count", c_uint64 * 2),
        ("dim", c_size_t),
        ("frechet", c_double),
        ("score", c_double),
        ("score_deviation", c_double),
        ("score_in_order", c_double),
        ("score_in_order_deviation", c_double),
        ("kid", c_double),
        ("kid_deviation", c_double),
        ("precision", c_double),
        ("recall", c_double),
        ("sliced", c_double),
    ]


class psld_likelihood_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("tolerance", c_double),
        ("eps", c_double),
        ("exact", c_int),
        ("probes", c_int),
        ("ode_group", c_int),
        ("batch", c_int),
        ("seed", c_uint64),
        ("progress", psld_progress_fn),
        ("progress_user", c_void_p),
    ]


class psld_nll(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("count", c_uint64),
        ("dim", c_size_t),
        ("bits", c_double),
        ("error", c_double),
        ("nats", c_double),
        ("nfe", c_uint64),
        ("is_bound", c_int),
        ("is_exact", c_int),
    ]


class psld_sweep_cell(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("model", c_char_p),
        ("process", c_char_p),
        ("sampler", c_char_p),
        ("grid", c_char_p),
        ("nfe", c_int),
        ("tolerance", c_double),
        ("seed", c_uint64),
        ("cfg", c_double),
        ("has_cfg", c_int),
        ("reserved", c_int),
    ]


class psld_sweep_result(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("comparison", POINTER(psld_comparison)),
        ("nfe", c_uint64),
        ("seconds", c_double),
        ("is_fid", c_int),
        ("reserved", c_int),
    ]


class psld_design_criterion_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("summary", c_char_p),
    ]


class psld_design_options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("learn", c_char_p),
        ("criterion", c_char_p),
        ("limits", c_char_p),
        ("sampler", c_char_p),
        ("starts", POINTER(c_char_p)),
        ("start_count", c_int),
        ("nfe", c_int),
        ("trials", c_int),
        ("searches", c_int),
        ("number", c_int),
        ("final_number", c_int),
        ("directions", c_int),
        ("components", c_int),
        ("scale", c_double),
        ("seed", c_uint64),
    ]


PSLD_DESIGN_START = 0
PSLD_DESIGN_SEARCH = 1
PSLD_DESIGN_FINAL = 2


class psld_design_trial(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("stage", c_int),
        ("is_best", c_int),
        ("number", c_uint64),
        ("total", c_uint64),
        ("recipe", c_void_p),
    ]


class psld_design_costs(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("error", c_double),
        ("distance", c_double),
        ("factors", c_double),
        ("total", c_double),
    ]


class psld_curve(Structure):
    _fields_ = [
        ("label", c_char_p),
        ("count", c_size_t),
        ("x", c_void_p),
        ("y", c_void_p),
        ("colour", c_int),
        ("dash", c_int),
    ]


# Results and parameters.
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "psld_error_text": (c_char_p, []),
    "psld_text_shortest": (c_char_p, [c_double, c_char_p]),
    "psld_text_nearest": (c_char_p, [c_char_p, POINTER(c_char_p), c_size_t]),
    "psld_folder_make": (STATUS, [c_char_p]),
    "psld_version": (c_char_p, []),
    "psld_log_to": (None, [psld_log_fn, c_void_p]),
    "psld_threads_set": (STATUS, [c_int]),
    "psld_threads_get": (c_int, []),
    "psld_array_create": (STATUS, [c_int, c_int, c_void_p, c_void_p]),
    "psld_array_free": (None, [POINTER(psld_array)]),
    "psld_array_load": (STATUS, [c_char_p, c_void_p]),
    "psld_array_inspect": (STATUS, [c_char_p, POINTER(psld_array)]),
    "psld_array_save": (STATUS, [POINTER(psld_array), c_char_p]),
    "psld_array_encode": (STATUS, [POINTER(psld_array), c_void_p, c_void_p]),
    "psld_bytes_free": (None, [c_void_p]),
    "psld_npz_save": (STATUS, [c_char_p, c_size_t, POINTER(c_char_p), c_void_p]),
    "psld_type_name": (c_char_p, [c_int]),
    "psld_array_convert": (STATUS, [POINTER(psld_array), c_int, c_void_p]),
    "psld_array_fingerprint": (c_uint64, [POINTER(psld_array)]),
    "psld_images_from_data": (STATUS, [POINTER(psld_array), c_int, c_void_p]),
    "psld_text_save": (STATUS, [c_char_p, c_char_p]),
    "psld_folder_lock_take": (STATUS, [c_char_p, c_void_p]),
    "psld_folder_lock_free": (None, [c_void_p]),
    "psld_recipe_open": (STATUS, [c_char_p, c_void_p]),
    "psld_recipe_create": (STATUS, [POINTER(psld_recipe_spec), c_void_p]),
    "psld_recipe_parse": (STATUS, [c_char_p, c_char_p, c_void_p]),
    "psld_recipe_free": (None, [c_void_p]),
    "psld_recipe_text": (STATUS, [c_void_p, POINTER(c_char_p)]),
    "psld_recipe_get": (POINTER(psld_recipe_spec), [c_void_p]),
    "psld_recipe_same": (c_int, [c_void_p, c_void_p]),
    "psld_recipe_difference": (None, [c_void_p, c_void_p, c_char_p, c_size_t]),
    "psld_preset_at": (POINTER(psld_preset_info), [c_int]),
    "psld_preset_find": (POINTER(psld_preset_info), [c_char_p]),
    "psld_recipe_kernel": (STATUS, [c_void_p, c_double, c_int, c_void_p, c_void_p, c_void_p]),
    "psld_recipe_move": (STATUS, [c_void_p, c_double, c_double, c_uint64, c_uint64, c_uint64, c_size_t, c_size_t, c_void_p]),
    "psld_recipe_factor": (STATUS, [c_void_p, c_double, c_int, c_void_p, c_void_p]),
    "psld_recipe_order": (c_int, [c_void_p, c_void_p]),
    "psld_recipe_predicted": (c_int, [c_void_p, c_void_p]),
    "psld_recipe_denoiser": (STATUS, [c_void_p, c_double, c_void_p, c_void_p, c_void_p, c_void_p]),
    "psld_damping_name": (c_char_p, [c_int]),
    "psld_recipe_analyse": (STATUS, [c_void_p, POINTER(psld_analysis)]),
    "psld_recipe_distance": (STATUS, [c_void_p, c_double, c_void_p]),
    "psld_recipe_sigma": (STATUS, [c_void_p, c_double, c_void_p]),
    "psld_recipe_time": (STATUS, [c_void_p, c_double, c_void_p]),
    "psld_recipe_error_factors": (STATUS, [c_void_p, c_double, c_void_p, c_void_p]),
    "psld_process_open": (STATUS, [c_char_p, c_int, c_void_p]),
    "psld_process_parse": (STATUS, [c_char_p, c_char_p, c_int, c_void_p]),
    "psld_process_free": (None, [c_void_p]),
    "psld_process_name": (c_char_p, [c_void_p]),
    "psld_process_variables": (c_int, [c_void_p]),
    "psld_process_data": (c_int, [c_void_p]),
    "psld_process_variable": (c_char_p, [c_void_p, c_int]),
    "psld_process_noisy": (c_int, [c_void_p, c_void_p]),
    "psld_process_recipe": (c_void_p, [c_void_p]),
    "psld_process_drift": (STATUS, [c_void_p, c_size_t, c_void_p, c_double, c_void_p, c_void_p]),
    "psld_process_energy": (STATUS, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "psld_process_simulate": (STATUS, [c_void_p, c_uint64, c_uint64, c_size_t, c_double, c_double, c_int, c_void_p]),
    "psld_process_draw": (STATUS, [c_void_p, c_uint64, c_uint64, c_size_t, c_void_p]),
    "psld_process_check": (STATUS, [c_void_p, c_uint64, POINTER(psld_process_report)]),
    "psld_process_exchange": (STATUS, [c_void_p, c_int, POINTER(psld_exchange)]),
    "psld_source_callback": (STATUS, [POINTER(psld_callback), c_void_p]),
    "psld_mixture_create": (STATUS, [c_size_t, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]),
    "psld_mixture_label": (STATUS, [c_void_p, c_void_p, c_void_p]),
    "psld_mixture_classes": (c_size_t, [c_void_p]),
    "psld_mixture_free": (None, [c_void_p]),
    "psld_mixture_dim": (c_size_t, [c_void_p]),
    "psld_mixture_density": (c_double, [c_void_p, c_void_p]),
    "psld_mixture_moments": (None, [c_void_p, c_void_p, c_void_p]),
    "psld_mixture_draw": (STATUS, [c_void_p, c_void_p, c_double, c_uint64, c_uint64, c_size_t, c_void_p]),
    "psld_source_mixture": (STATUS, [c_void_p, c_void_p, c_void_p]),
    "psld_source_free": (None, [c_void_p]),
    "psld_source_predict": (STATUS, [c_void_p, POINTER(psld_states), c_void_p]),
    "psld_source_has_gradient": (c_int, [c_void_p]),
    "psld_source_gradient": (STATUS, [c_void_p, POINTER(psld_states), c_void_p, c_void_p, c_void_p]),
    "psld_source_denoise": (STATUS, [c_void_p, c_void_p, POINTER(psld_states), c_void_p]),
    "psld_classifier_callback": (STATUS, [psld_classify_fn, c_void_p, c_size_t, c_void_p]),
    "psld_classifier_mixture": (STATUS, [c_void_p, c_void_p, c_void_p]),
    "psld_classifier_free": (None, [c_void_p]),
    "psld_classifier_classes": (c_size_t, [c_void_p]),
    "psld_classifier_evaluate": (STATUS, [c_void_p, POINTER(psld_states), c_void_p, c_void_p, c_void_p]),
    "psld_source_guide": (STATUS, [c_void_p, c_void_p, c_void_p, c_size_t, c_double, c_void_p]),
    "psld_source_label": (STATUS, [c_void_p, c_void_p, POINTER(psld_labels), c_void_p]),
    "psld_source_classes": (c_size_t, [c_void_p]),
    "psld_source_needs_label": (c_int, [c_void_p]),
    "psld_task_at": (POINTER(psld_task_info), [c_int]),
    "psld_task_find": (POINTER(psld_task_info), [c_char_p]),
    "psld_operator_create": (STATUS, [POINTER(psld_task), c_void_p]),
    "psld_operator_free": (None, [c_void_p]),
    "psld_operator_shape": (c_int, [c_void_p, c_void_p]),
    "psld_operator_measure": (STATUS, [c_void_p, c_void_p, c_double, c_uint64, c_uint64, c_void_p]),
    "psld_operator_show": (STATUS, [c_void_p, c_void_p, c_void_p]),
    "psld_restore_method_at": (POINTER(psld_restore_method_info), [c_int]),
    "psld_restore_method_find": (POINTER(psld_restore_method_info), [c_char_p]),
    "psld_source_restore": (STATUS, [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(psld_restore_options), c_void_p]),
    "psld_source_translate": (STATUS, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "psld_source_clip": (STATUS, [c_void_p, c_void_p, c_double, c_double, c_void_p]),
    "psld_source_autoguide": (STATUS, [c_void_p, c_void_p, c_void_p, c_double, c_void_p]),
    "psld_evaluation_denoise": (STATUS, [POINTER(psld_evaluation), c_void_p, c_void_p, c_void_p]),
    "psld_quality_at": (POINTER(psld_quality_info), [c_int]),
    "psld_quality_find": (POINTER(psld_quality_info), [c_char_p]),
    "psld_sample_quality": (STATUS, [c_void_p, c_char_p, POINTER(psld_sample_options)]),
    "psld_sample_complete": (STATUS, [c_void_p, POINTER(psld_sample_options)]),
    "psld_sampler_at": (POINTER(psld_sampler_info), [c_int]),
    "psld_sampler_find": (POINTER(psld_sampler_info), [c_char_p]),
    "psld_grid_at": (POINTER(psld_grid_info), [c_int]),
    "psld_grid_find": (POINTER(psld_grid_info), [c_char_p]),
    "psld_sample": (STATUS, [c_void_p, c_void_p, POINTER(psld_sample_options), c_uint64, c_size_t, c_size_t, c_void_p, c_void_p, c_void_p]),
    "psld_process_sample": (STATUS, [c_void_p, psld_score_fn, c_void_p, POINTER(psld_sample_options), c_uint64, c_size_t, c_void_p, c_void_p, c_void_p]),
    "psld_process_sample_complete": (STATUS, [c_void_p, POINTER(psld_sample_options)]),
    "psld_encode": (STATUS, [c_void_p, c_void_p, POINTER(psld_sample_options), c_uint64, c_size_t, c_size_t, c_void_p, c_void_p, c_void_p]),
    "psld_device_count": (c_size_t, []),
    "psld_device_describe": (STATUS, [c_size_t, POINTER(psld_device_info)]),
    "psld_device_try": (STATUS, [c_char_p]),
    "psld_model_open": (STATUS, [c_char_p, POINTER(psld_model_options), c_void_p]),
    "psld_model_create": (STATUS, [c_char_p, POINTER(psld_model_options), c_uint64, c_void_p]),
    "psld_model_parse": (STATUS, [c_char_p, c_char_p, POINTER(psld_model_options), c_void_p]),
    "psld_model_free": (None, [c_void_p]),
    "psld_model_kind_of": (c_int, [c_void_p]),
    "psld_model_open_any": (STATUS, [c_char_p, POINTER(psld_model_options), c_void_p]),
    "psld_model_process": (c_void_p, [c_void_p]),
    "psld_model_process_name": (c_char_p, [c_void_p]),
    "psld_model_recipe": (c_void_p, [c_void_p]),
    "psld_model_source": (c_void_p, [c_void_p]),
    "psld_model_weak_scale": (c_double, [c_void_p]),
    "psld_model_classifier": (c_void_p, [c_void_p]),
    "psld_model_label": (STATUS, [c_void_p, c_char_p, c_void_p]),
    "psld_model_labels": (STATUS, [c_void_p, c_char_p, c_void_p]),
    "psld_model_mixture": (c_void_p, [c_void_p]),
    "psld_model_shape": (c_int, [c_void_p, c_void_p]),
    "psld_model_parameters": (c_size_t, [c_void_p]),
    "psld_model_channels": (None, [c_void_p, c_void_p, c_void_p]),
    "psld_model_flops": (c_double, [c_void_p]),
    "psld_model_isa": (c_char_p, [c_void_p]),
    "psld_model_precision": (c_char_p, [c_void_p]),
    "psld_model_device": (c_char_p, [c_void_p]),
    "psld_model_bytes": (c_uint64, [c_void_p]),
    "psld_model_classes": (c_size_t, [c_void_p]),
    "psld_model_class": (STATUS, [c_void_p, c_size_t, c_char_p, c_size_t]),
    "psld_model_draw_labels": (STATUS, [c_void_p, c_uint64, c_uint64, c_size_t, c_void_p]),
    "psld_model_cfg": (c_double, [c_void_p]),
    "psld_model_predicts": (c_char_p, [c_void_p]),
    "psld_model_trained": (STATUS, [c_void_p, c_void_p, c_void_p]),
    "psld_model_is_tuned": (c_int, [c_void_p]),
    "psld_model_prefer": (STATUS, [c_void_p, POINTER(psld_sample_options)]),
    "psld_model_sample": (STATUS, [c_void_p, POINTER(psld_sample_options), c_uint64, c_size_t, POINTER(psld_array), c_int, c_void_p, c_void_p]),
    "psld_model_draw": (STATUS, [c_void_p, POINTER(psld_sample_options), c_uint64, c_size_t, POINTER(psld_array), c_int, psld_samples_fn, c_void_p, c_void_p]),
    "psld_trajectory_create": (STATUS, [c_void_p, c_uint64, c_size_t, c_size_t, c_void_p]),
    "psld_trajectory_free": (None, [c_void_p]),
    "psld_trajectory_watch": (None, [c_void_p, POINTER(psld_sample_options)]),
    "psld_trajectory_frames": (POINTER(psld_array), [c_void_p]),
    "psld_model_encode": (STATUS, [c_void_p, POINTER(psld_sample_options), c_uint64, POINTER(psld_array), c_void_p, c_void_p]),
    "psld_model_batch": (c_size_t, [c_void_p]),
    "psld_model_fingerprint": (c_uint64, [c_void_p]),
    "psld_model_evaluate": (STATUS, [c_void_p, POINTER(psld_array), POINTER(psld_array), POINTER(psld_array), POINTER(psld_array), c_void_p, c_void_p]),
    "psld_model_denoise": (STATUS, [c_void_p, POINTER(psld_array), POINTER(psld_array), POINTER(psld_array), c_void_p]),
    "psld_model_output": (STATUS, [c_void_p, POINTER(psld_array), POINTER(psld_array), POINTER(psld_array), c_void_p]),
    "psld_model_sigma_range": (STATUS, [c_void_p, c_void_p, c_void_p]),
    "psld_model_timesteps": (c_size_t, [c_void_p]),
    "psld_model_timestep_time": (STATUS, [c_void_p, c_double, c_void_p]),
    "psld_model_family": (c_char_p, [c_void_p]),
    "psld_model_save": (STATUS, [c_void_p, c_char_p]),
    "psld_model_time": (STATUS, [c_void_p, c_size_t, c_int, c_void_p, c_void_p]),
    "psld_model_plan": (STATUS, [c_void_p, c_size_t, POINTER(c_char_p)]),
    "psld_model_profile": (STATUS, [c_void_p, c_size_t, c_int, psld_kernel_time_fn, c_void_p, POINTER(c_char_p)]),
    "psld_text_free": (None, [c_char_p]),
    "psld_tensors_list": (STATUS, [c_char_p, psld_tensor_fn, c_void_p]),
    "psld_npz_list": (STATUS, [c_char_p, psld_tensor_fn, c_void_p]),
    "psld_tensors_convert": (STATUS, [c_char_p, c_char_p]),
    "psld_image_load": (STATUS, [c_char_p, c_void_p]),
    "psld_image_inspect": (STATUS, [c_char_p, POINTER(c_char_p), c_void_p]),
    "psld_image_save": (STATUS, [POINTER(psld_array), c_char_p]),
    "psld_image_encode": (STATUS, [POINTER(psld_array), c_void_p, c_void_p]),
    "psld_image_grid": (STATUS, [POINTER(psld_array), c_size_t, c_char_p]),
    "psld_images_sheet": (STATUS, [POINTER(psld_array), c_size_t, c_void_p]),
    "psld_images_enlarge": (STATUS, [POINTER(psld_array), c_size_t, c_void_p]),
    "psld_resample_at": (POINTER(psld_resample_info), [c_int]),
    "psld_resample_find": (POINTER(psld_resample_info), [c_char_p]),
    "psld_data_open": (STATUS, [c_char_p, POINTER(psld_data_options), c_void_p]),
    "psld_data_free": (None, [c_void_p]),
    "psld_data_kind": (c_char_p, [c_void_p]),
    "psld_data_count": (c_uint64, [c_void_p]),
    "psld_data_shape": (c_int, [c_void_p, c_void_p]),
    "psld_data_is_image": (c_int, [c_void_p]),
    "psld_data_classes": (c_size_t, [c_void_p]),
    "psld_data_class": (c_char_p, [c_void_p, c_size_t]),
    "psld_data_class_count": (c_uint64, [c_void_p, c_size_t]),
    "psld_data_skipped": (c_uint64, [c_void_p]),
    "psld_data_good": (c_uint64, [c_void_p]),
    "psld_data_label": (c_int32, [c_void_p, c_uint64]),
    "psld_data_name": (c_char_p, [c_void_p, c_uint64]),
    "psld_data_is_broken": (c_int, [c_void_p, c_uint64]),
    "psld_data_read": (STATUS, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "psld_data_read_u8": (STATUS, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "psld_data_check": (STATUS, [c_void_p, psld_progress_fn, c_void_p]),
    "psld_data_mixed": (c_int, [c_void_p]),
    "psld_model_data_options": (STATUS, [c_void_p, POINTER(psld_data_options)]),
    "psld_toy_at": (POINTER(psld_toy_info), [c_int]),
    "psld_toy_find": (POINTER(psld_toy_info), [c_char_p]),
    "psld_training_open": (STATUS, [c_char_p, POINTER(psld_training_options), c_void_p]),
    "psld_training_free": (None, [c_void_p]),
    "psld_training_step": (STATUS, [c_void_p, POINTER(psld_training_report)]),
    "psld_training_save": (STATUS, [c_void_p]),
    "psld_training_run": (STATUS, [c_void_p, psld_training_fn, c_void_p]),
    "psld_training_steps": (c_uint64, [c_void_p]),
    "psld_training_model": (c_void_p, [c_void_p]),
    "psld_training_data": (c_void_p, [c_void_p]),
    "psld_training_config": (c_char_p, [c_void_p]),
    "psld_training_reasons": (c_char_p, [c_void_p]),
    "psld_training_bytes": (c_size_t, [c_void_p]),
    "psld_model_time_training": (STATUS, [c_void_p, c_size_t, c_int, c_void_p, c_void_p]),
    "psld_run_inspect": (STATUS, [c_char_p, POINTER(psld_run_info)]),
    "psld_run_stop": (STATUS, [c_char_p]),
    "psld_training_key_info": (c_int, [c_int, POINTER(psld_key)]),
    "psld_linear_algebra_use": (STATUS, [POINTER(psld_linear_algebra)]),
    "psld_statistics_create": (STATUS, [c_size_t, c_void_p]),
    "psld_statistics_free": (None, [c_void_p]),
    "psld_statistics_add": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "psld_statistics_finish": (STATUS, [c_void_p]),
    "psld_statistics_load": (STATUS, [c_char_p, c_void_p]),
    "psld_statistics_save": (STATUS, [c_void_p, c_char_p]),
    "psld_statistics_dim": (c_size_t, [c_void_p]),
    "psld_statistics_count": (c_uint64, [c_void_p]),
    "psld_statistics_mean": (c_void_p, [c_void_p]),
    "psld_statistics_cov": (c_void_p, [c_void_p]),
    "psld_frechet_distance": (STATUS, [c_void_p, c_void_p, c_void_p]),
    "psld_inception_score": (STATUS, [POINTER(psld_array), c_size_t, c_int, c_void_p, c_void_p]),
    "psld_kid": (STATUS, [POINTER(psld_array), POINTER(psld_array), POINTER(psld_kid_options), c_void_p, c_void_p]),
    "psld_precision_recall": (STATUS, [POINTER(psld_array), POINTER(psld_array), c_size_t, c_void_p, c_void_p]),
    "psld_sliced_wasserstein": (STATUS, [c_size_t, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_uint64, c_void_p]),
    "psld_features_open": (STATUS, [c_char_p, c_void_p]),
    "psld_features_open_on": (STATUS, [c_char_p, c_char_p, c_void_p]),
    "psld_features_free": (None, [c_void_p]),
    "psld_features_is_fid": (c_int, [c_void_p]),
    "psld_features_name": (c_char_p, [c_void_p]),
    "psld_features_dim": (c_size_t, [c_void_p]),
    "psld_features_classes": (c_size_t, [c_void_p]),
    "psld_features_extract": (STATUS, [c_void_p, POINTER(psld_array), c_void_p, c_void_p]),
    "psld_set_open": (STATUS, [c_char_p, c_uint64, c_void_p]),
    "psld_set_open_as": (STATUS, [c_char_p, c_uint64, POINTER(psld_data_options), c_void_p]),
    "psld_set_fitted": (c_int, [c_void_p]),
    "psld_set_model": (STATUS, [c_void_p, POINTER(psld_sample_options), c_uint64, c_int, c_void_p]),
    "psld_set_inpainted": (STATUS, [c_void_p, POINTER(psld_sample_options), c_uint64, c_int, c_void_p, c_char_p, c_void_p]),
    "psld_set_inpainted_as": (STATUS, [c_void_p, POINTER(psld_sample_options), c_uint64, c_int, c_void_p, POINTER(psld_hiding), c_void_p]),
    "psld_set_free": (None, [c_void_p]),
    "psld_set_classes": (c_size_t, [c_void_p]),
    "psld_set_class": (STATUS, [c_void_p, c_size_t, c_char_p, c_size_t]),
    "psld_set_of_class": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "psld_set_kind_of": (c_int, [c_void_p]),
    "psld_set_count": (c_uint64, [c_void_p]),
    "psld_set_nfe": (c_uint64, [c_void_p]),
    "psld_metric_at": (POINTER(psld_metric_info), [c_int]),
    "psld_metric_find": (POINTER(psld_metric_info), [c_char_p]),
    "psld_metrics_parse": (STATUS, [c_char_p, c_void_p]),
    "psld_compare": (STATUS, [c_void_p, c_void_p, c_void_p, POINTER(psld_compare_options), POINTER(psld_comparison)]),
    "psld_set_features": (STATUS, [c_void_p, c_void_p, psld_progress_fn, c_void_p, c_void_p]),
    "psld_set_statistics": (STATUS, [c_void_p, c_void_p, psld_progress_fn, c_void_p, c_void_p]),
    "psld_training_distance": (POINTER(psld_training_metric), []),
    "psld_compare_page": (STATUS, [c_void_p, c_void_p, c_size_t, psld_progress_fn, c_void_p, c_char_p]),
    "psld_likelihood": (STATUS, [c_void_p, c_void_p, POINTER(psld_likelihood_options), c_uint64, c_size_t, c_size_t, c_void_p, c_void_p, c_void_p]),
    "psld_model_nll": (STATUS, [c_void_p, c_void_p, POINTER(psld_likelihood_options), POINTER(psld_nll)]),
    "psld_sweep_open": (STATUS, [c_char_p, POINTER(c_char_p), c_size_t, c_void_p]),
    "psld_sweep_set_device": (STATUS, [c_void_p, c_char_p]),
    "psld_sweep_free": (None, [c_void_p]),
    "psld_sweep_name": (c_char_p, [c_void_p]),
    "psld_sweep_metrics": (c_uint, [c_void_p]),
    "psld_sweep_number": (c_uint64, [c_void_p]),
    "psld_sweep_count": (c_size_t, [c_void_p]),
    "psld_sweep_cell_at": (STATUS, [c_void_p, c_size_t, POINTER(psld_sweep_cell)]),
    "psld_sweep_key": (STATUS, [c_void_p, c_size_t, c_char_p, c_size_t]),
    "psld_sweep_run": (STATUS, [c_void_p, c_size_t, psld_progress_fn, c_void_p, POINTER(psld_sweep_result)]),
    "psld_sweep_estimate": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "psld_design_criterion_at": (POINTER(psld_design_criterion_info), [c_int]),
    "psld_design_create": (STATUS, [c_char_p, POINTER(psld_design_options), c_void_p]),
    "psld_design_free": (None, [c_void_p]),
    "psld_design_next": (STATUS, [c_void_p, POINTER(psld_design_trial)]),
    "psld_design_key": (STATUS, [c_void_p, c_char_p, c_size_t]),
    "psld_design_measure": (STATUS, [c_void_p, psld_progress_fn, c_void_p, POINTER(psld_design_costs)]),
    "psld_design_tell": (STATUS, [c_void_p, POINTER(psld_design_costs)]),
    "psld_design_floor": (STATUS, [c_void_p, c_void_p]),
    "psld_plot_recipes": (STATUS, [c_void_p, c_size_t, c_char_p]),
    "psld_plot_process": (STATUS, [c_void_p, POINTER(psld_process_report), c_char_p]),
    "psld_plot_points": (STATUS, [c_void_p, c_void_p, c_size_t, c_char_p, c_char_p]),
    "psld_plot_curves": (STATUS, [c_char_p, c_char_p, c_char_p, c_int, c_int, POINTER(psld_curve), c_size_t, c_char_p]),
    "psld_ranks_begin": (STATUS, []),
    "psld_ranks_end": (None, [c_int]),
    "psld_rank": (c_int, []),
    "psld_rank_count": (c_int, []),
    "psld_ranks_merge": (None, [c_void_p, c_size_t]),
}

# What the macros that initialise structs set: all but the size, zeros and NULL.
INITIAL: Dict[str, Tuple[Any, Dict[str, Any]]] = {
    "PSLD_RECIPE_SPEC_DEFAULTS": (psld_recipe_spec, {"name": b"unnamed", "k": 1, "D": (0.5,), "beta_min": 8, "beta_max": 8}),
    "PSLD_ANALYSIS_EMPTY": (psld_analysis, {}),
    "PSLD_PROCESS_REPORT_EMPTY": (psld_process_report, {}),
    "PSLD_EXCHANGE_EMPTY": (psld_exchange, {"known": -1}),
    "PSLD_KEY_EMPTY": (psld_key, {}),
    "PSLD_CALLBACK_DEFAULTS": (psld_callback, {}),
    "PSLD_LABELS_DEFAULTS": (psld_labels, {"cfg": -1, "sigma_min": -1, "sigma_max": -1}),
    "PSLD_TASK_DEFAULTS": (psld_task, {"factor": -1, "blur": -1}),
    "PSLD_RESTORE_DEFAULTS": (psld_restore_options, {"scale": 1, "tolerance": -1, "iterations": -1}),
    "PSLD_INPAINTING_DEFAULTS": (psld_inpainting, {"images": -1, "each": -1, "repeats": -1, "jump": -1, "lagging": -1}),
    "PSLD_SAMPLE_DEFAULTS": (psld_sample_options, {"rho": -1, "nfe": -1, "order": -1, "eta": -1, "detail": -1, "tolerance": -1, "eps": -1, "end_sigma": -1, "clip": -1, "threshold": -1, "denoise": -1, "corrector": -1, "corrector_size": -1, "ode_group": -1, "batch": -1}),
    "PSLD_DEVICE_INFO_EMPTY": (psld_device_info, {"id": b"", "kind": b"", "name": b"", "platform": b"", "driver": b""}),
    "PSLD_MODEL_DEFAULTS": (psld_model_options, {"cfg": -1}),
    "PSLD_DATA_DEFAULTS": (psld_data_options, {"image_size": -1, "channels": -1, "stretch": -1, "resample": -1, "test": -1, "strict": -1, "once": -1, "class_count": -1, "memory": -1, "skip_limit": -1}),
    "PSLD_TRAINING_METRIC_DEFAULTS": (psld_training_metric, {}),
    "PSLD_TRAINING_DEFAULTS": (psld_training_options, {"override_count": -1, "classifier": -1, "seconds": -1}),
    "PSLD_TRAINING_REPORT_EMPTY": (psld_training_report, {}),
    "PSLD_RUN_INFO_EMPTY": (psld_run_info, {}),
    "PSLD_LINEAR_ALGEBRA_DEFAULTS": (psld_linear_algebra, {}),
    "PSLD_KID_DEFAULTS": (psld_kid_options, {"subsets": -1, "subset_size": -1, "seed": -1}),
    "PSLD_HIDING_DEFAULTS": (psld_hiding, {"lagging": -1}),
    "PSLD_COMPARE_DEFAULTS": (psld_compare_options, {"splits": -1, "neighbours": -1, "kid_subsets": -1, "kid_subset_size": -1, "directions": -1, "kid_seed": -1}),
    "PSLD_COMPARISON_EMPTY": (psld_comparison, {"count": (0, 0,)}),
    "PSLD_LIKELIHOOD_DEFAULTS": (psld_likelihood_options, {"tolerance": -1, "eps": -1, "exact": -1, "probes": -1, "ode_group": -1, "batch": -1}),
    "PSLD_NLL_EMPTY": (psld_nll, {}),
    "PSLD_SWEEP_CELL_EMPTY": (psld_sweep_cell, {}),
    "PSLD_SWEEP_RESULT_EMPTY": (psld_sweep_result, {}),
    "PSLD_DESIGN_DEFAULTS": (psld_design_options, {"start_count": -1, "nfe": -1, "trials": -1, "searches": -1, "number": -1, "final_number": -1, "directions": -1, "components": -1, "scale": -1}),
    "PSLD_DESIGN_TRIAL_EMPTY": (psld_design_trial, {}),
    "PSLD_DESIGN_COSTS_EMPTY": (psld_design_costs, {}),
}
